//! Logs to stderr and, where a collector is named, spans to it.

mod batch;
mod callers;
mod collector;
mod courier;
mod draft;
mod encoded;
mod environment;
mod line;
mod log;
mod open;
mod outbox;
mod parts;
mod scribe;
mod spans;
#[cfg(test)]
mod told;
mod wire;

use std::io::{self, IsTerminal};
use std::time::Duration;

use opentelemetry::global;
use setpoint_proto::policy::Policy;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{FilterFn, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, registry, reload};

use crate::settings::{Common, Traces};
pub use callers::{Callers, Reporter};
use line::Traced;
pub use log::Log;
use spans::Spans;

/// How long the exit waits for the last spans to be exported.
const FLUSH: Duration = Duration::from_secs(3);

/// Telemetry cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log filter does not parse.
    #[error("the log filter {filter:?} is none: {source}")]
    Filter {
        /// As it was set.
        filter: String,
        /// Why not.
        source: tracing_subscriber::filter::ParseError,
    },
    /// The collector's address or another `OTEL_*` variable is wrong.
    #[error("spans cannot be exported: {0}")]
    Exporter(environment::Error),
    /// Someone else has set the process's subscriber.
    #[error("telemetry was started twice")]
    Twice,
}

/// The process's telemetry, from start to the last flushed span.
pub struct Telemetry {
    log: Log,
    spans: Option<Spans>,
}

impl Telemetry {
    /// Sets the process's subscriber. Must run inside the runtime, for the exporter's connection lives there.
    pub fn start(service: &'static str, common: &Common) -> Result<Self, Error> {
        let Traces {
            trace_age,
            noop_rounds,
        } = common.telemetry;
        let policy = Policy {
            trace_age,
            noop_rounds,
        };
        policy.set();
        let (filter, handle) = reload::Layer::new(log::parse(&common.log)?);
        let spans = spans::begin(service, &common.instance).map_err(Error::Exporter)?;
        let drawn = spans.as_ref().map(|spans| {
            global::set_tracer_provider(spans.scribe.clone());
            tracing_opentelemetry::layer()
                .with_tracer(spans.scribe.clone())
                .with_location(false)
                .with_threads(false)
                .with_target(false)
                .with_tracked_inactivity(false)
                // Else each poll of each task would set and unset it; whoever needs it asks the span.
                .with_context_activation(false)
                .with_filter(drawing())
        });
        registry()
            .with(lines().with_filter(filter))
            .with(drawn)
            .try_init()
            .map_err(|_| Error::Twice)?;
        Ok(Self {
            log: Log::of(handle),
            spans,
        })
    }

    /// What changes the log level at run time.
    pub fn log(&self) -> Log {
        self.log.clone()
    }

    /// Whose spans ours are below.
    pub fn callers(&self) -> Callers {
        let spans = self.spans.as_ref();
        spans.map(|spans| spans.callers.clone()).unwrap_or_default()
    }

    /// Sends the last spans, within a deadline.
    pub async fn flush(self) {
        if let Some(spans) = self.spans {
            spans.finish(FLUSH).await;
        }
    }
}

/// What is drawn, with the finest level of it: without that, each line that the libraries beneath never log would be
/// looked up instead of passed over, a hundred times for one call.
fn drawing() -> FilterFn<impl Fn(&Metadata<'_>) -> bool> {
    filter_fn(is_drawn).with_max_level_hint(Level::INFO)
}

/// Spans of ours only: the libraries beneath have some of their own, which would drown a trace. Of what is logged, what
/// is wrong; the rest is found in the log by the trace's id.
fn is_drawn(metadata: &Metadata<'_>) -> bool {
    let least = match metadata.is_span() {
        true => Level::INFO,
        false => Level::WARN,
    };
    metadata.target().starts_with("setpoint") && *metadata.level() <= least
}

/// Text where a person reads along, JSON where a machine does; both with the ids of the trace they belong to.
fn lines() -> Box<dyn Layer<Registry> + Send + Sync> {
    let layer = fmt::layer().with_writer(io::stderr);
    match io::stderr().is_terminal() {
        true => layer
            .map_event_format(|_| Traced::text(fmt::format().with_ansi(true)))
            .boxed(),
        false => layer
            .json()
            .map_event_format(|_| {
                Traced::json(
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
    fn what_the_libraries_beneath_never_log_is_not_looked_up_for_being_drawn() {
        let drawing: &dyn Filter<Registry> = &drawing();
        assert_eq!(drawing.max_level_hint(), Some(LevelFilter::INFO));
    }
}
