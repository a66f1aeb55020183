//! Logs to stderr, the registration of metrics, and the export of spans to an OpenTelemetry collector.
//!
//! Sampling, batches and the export are those of OpenTelemetry's SDK, configured by its `OTEL_*` variables
//! (<https://opentelemetry.io/docs/languages/sdk-configuration/>). Without `OTEL_EXPORTER_OTLP_ENDPOINT` or
//! `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` no span is recorded. A process that is killed loses the spans of its last
//! batch.
//!
//! Waits are spans, too: `delivery` (from the write to the cache of the service that reacts), `queue`, `barrier`, and
//! `takeover` (there was no leader). Each step has its reason as the attribute `because`, and the Events that it
//! records are span events. A reconcile with several causes belongs to the youngest of their traces and links the
//! others; a heartbeat, a resync or a crash begins a trace of its own, and a trace older than `telemetry.trace_age` is
//! not continued. Every write answers with its `traceparent` and continues the one that it is sent.
//!
//! Spans are exported every 200 ms unless `OTEL_BSP_SCHEDULE_DELAY` is set. A process that is killed may leave parts of
//! its trace without a parent; one that is stopped loses no span. Spans that cannot be exported are lost, and the log
//! says when that begins and ends.
//!
//! # Decisions
//!
//! * 2026-11: we chose OpenTelemetry's SDK over an exporter of our own, which had cost less CPU, because every variable
//!   of the specification, retries and limits are its business. Wrong if export costs more than a few hundredths of a
//!   create: `tests/measure/README.md` has the figure.

mod export;
mod log_filter;
mod log_format;
pub mod metrics;
mod settings;
mod span;

use std::io::{self, IsTerminal};

use opentelemetry::global;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{FilterFn, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, registry, reload};

pub use log_filter::LogFilter;
pub use settings::Settings;
pub use span::{RPC_SYSTEM, Span, namespace_attribute, set_remote_parent};

/// The name of the instrumentation scope of all spans.
const SCOPE: &str = "setpoint";

/// An error in starting telemetry.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log filter does not parse.
    #[error("invalid log filter {filter:?}: {source}")]
    Filter {
        /// The filter.
        filter: String,
        /// The parser's error.
        source: tracing_subscriber::filter::ParseError,
    },
    /// The collector's endpoint or another `OTEL_*` variable is invalid.
    #[error("spans cannot be exported: {0}")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
    /// The process already has a subscriber.
    #[error("telemetry was started twice")]
    Twice,
}

/// The telemetry of a process.
pub struct Telemetry {
    log: LogFilter,
    provider: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Sets the process's subscriber, tracer and trace settings. Must be called within a runtime, which drives the
    /// exporter's connection.
    ///
    /// # Errors
    /// If the log filter or a variable is invalid, or on a second call.
    pub fn start(
        service: &'static str,
        instance: &str,
        log: &str,
        settings: Settings,
    ) -> Result<Self, Error> {
        settings.set();
        let (filter, handle) = reload::Layer::new(log_filter::parse(log)?);
        let provider = export::provider(service, instance)?;
        let spans = provider.as_ref().map(|provider| {
            global::set_tracer_provider(provider.clone());
            tracing_opentelemetry::layer()
                .with_tracer(provider.tracer(SCOPE))
                .with_location(false)
                .with_threads(false)
                .with_target(false)
                .with_tracked_inactivity(false)
                // Disabled: activating the context on every poll is expensive. Code that needs it reads it from the
                // span.
                .with_context_activation(false)
                .with_filter(recorded())
        });
        registry()
            .with(lines().with_filter(filter))
            .with(spans)
            .try_init()
            .map_err(|_| Error::Twice)?;
        Ok(Self {
            log: LogFilter::new(handle),
            provider,
        })
    }

    /// Returns the handle that changes the log filter at run time.
    pub fn log(&self) -> LogFilter {
        self.log.clone()
    }

    /// Exports the remaining spans, for at most three seconds.
    pub async fn shutdown(self) {
        if let Some(provider) = self.provider {
            export::shutdown(provider).await;
        }
    }
}

/// Returns the filter of spans and their events. Its level hint avoids evaluating the debug and trace events of
/// libraries, about a hundred for one call.
fn recorded() -> FilterFn<impl Fn(&Metadata<'_>) -> bool> {
    filter_fn(is_recorded).with_max_level_hint(Level::INFO)
}

/// Returns whether a span or event is recorded: spans of this workspace but not of libraries, and of log lines only
/// warnings and errors. The other lines are found in the log by their trace id.
fn is_recorded(metadata: &Metadata<'_>) -> bool {
    let least = match metadata.is_span() {
        true => Level::INFO,
        false => Level::WARN,
    };
    metadata.target().starts_with("setpoint") && *metadata.level() <= least
}

/// Returns the layer of log lines: text on a terminal, otherwise JSON, both with trace and span ids.
fn lines() -> Box<dyn Layer<Registry> + Send + Sync> {
    let layer = fmt::layer().with_writer(io::stderr);
    match io::stderr().is_terminal() {
        true => layer
            .map_event_format(|_| log_format::text(fmt::format().with_ansi(true)))
            .boxed(),
        false => layer
            .json()
            .fmt_fields(log_format::JsonFields)
            .map_event_format(|_| {
                log_format::json(
                    fmt::format()
                        .json()
                        .flatten_event(true)
                        .with_span_list(false),
                )
            })
            .boxed(),
    }
}

#[cfg(test)]
mod tests {
    use tracing::level_filters::LevelFilter;
    use tracing_subscriber::layer::Filter;

    use super::*;

    #[test]
    fn the_span_filter_has_a_level_hint_of_info() {
        let recorded: &dyn Filter<Registry> = &recorded();
        assert_eq!(recorded.max_level_hint(), Some(LevelFilter::INFO));
    }
}
