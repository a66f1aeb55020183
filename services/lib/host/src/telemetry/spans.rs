//! Spans on their way to an OpenTelemetry collector, as the standard `OTEL_*` variables ask.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry::{KeyValue, global};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::resource::{EnvResourceDetector, ResourceDetector};
use opentelemetry_sdk::trace::{
    self, BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider, SpanData, SpanProcessor as _,
};
use setpoint_proto::cause::RPC_SYSTEM;
use setpoint_proto::exported;
use tracing::{info, warn};

use super::callers::Callers;
use super::parts::Parts;

/// How long a span waits for others at most.
const DELAY: Duration = Duration::from_millis(200);
/// How many spans wait at most; more are dropped. Some 30 MiB of them.
const QUEUE: usize = 32_768;

/// What spans go through.
pub struct Spans {
    pub provider: SdkTracerProvider,
    pub callers: Callers,
}

/// The way to the collector, or `None` where none is named: then spans cost next to nothing.
pub fn begin(service: &'static str, instance: &str) -> Result<Option<Spans>, ExporterBuildError> {
    global::set_text_map_propagator(TraceContextPropagator::new());
    if !is_wanted(|name| env::var(name).ok()) {
        return Ok(None);
    }
    // Endpoint, headers, timeouts, sampler, limits and batch sizes are read from the environment by the SDK itself.
    let exporter = SpanExporter::builder().with_tonic().build()?;
    let resource = resource(service, instance);
    let mut batches = batches(Calm::around(exporter));
    batches.set_resource(&resource);
    let callers = Callers::before(batches);
    let provider = SdkTracerProvider::builder()
        .with_resource(resource)
        .with_span_processor(Parts::before(callers.clone()))
        .build();
    global::set_tracer_provider(provider.clone());
    exported::begin();
    Ok(Some(Spans { provider, callers }))
}

/// Spans leave soon, so that little is lost with a process that is killed, and a burst of them fits in the queue.
fn batches(exporter: impl trace::SpanExporter + 'static) -> BatchSpanProcessor {
    let unless_set = |name, value| env::var_os(name).is_none().then_some(value);
    let mut batches = BatchConfigBuilder::default();
    if let Some(delay) = unless_set("OTEL_BSP_SCHEDULE_DELAY", DELAY) {
        batches = batches.with_scheduled_delay(delay);
    }
    if unless_set("OTEL_BSP_MAX_QUEUE_SIZE", DELAY).is_some() {
        batches = batches.with_max_queue_size(QUEUE);
    }
    BatchSpanProcessor::builder(exporter)
        .with_batch_config(batches.build())
        .build()
}

fn is_wanted(env: impl Fn(&str) -> Option<String>) -> bool {
    let is = |name, value: &str| env(name).is_some_and(|found| found.eq_ignore_ascii_case(value));
    let names = |name| env(name).is_some_and(|found| !found.is_empty());
    let named = names("OTEL_EXPORTER_OTLP_ENDPOINT") || names("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    named && !is("OTEL_SDK_DISABLED", "true") && !is("OTEL_TRACES_EXPORTER", "none")
}

/// Who the spans are from; what the environment says about it goes before what the service knows.
fn resource(service: &'static str, instance: &str) -> Resource {
    let environment = EnvResourceDetector::new().detect();
    let name = env::var("OTEL_SERVICE_NAME")
        .ok()
        .filter(|name| !name.is_empty());
    let ours = [
        KeyValue::new("service.name", service),
        KeyValue::new("service.instance.id", instance.to_owned()),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
    ];
    Resource::builder()
        .with_attributes(ours)
        .with_attributes(
            environment
                .iter()
                .map(|(key, value)| KeyValue::new(key.clone(), value.clone())),
        )
        .with_attributes(name.map(|name| KeyValue::new("service.name", name)))
        .build()
}

/// The spans around calls to others, who may want to know that these have arrived.
fn calls(batch: &[SpanData]) -> Arc<[u64]> {
    let calls = batch.iter().filter(|span| is_call(span));
    let ids = calls.map(|span| u64::from_be_bytes(span.span_context.span_id().to_bytes()));
    ids.collect()
}

fn is_call(span: &SpanData) -> bool {
    let is_call = |attribute: &KeyValue| attribute.key.as_str() == RPC_SYSTEM;
    span.attributes.iter().any(is_call)
}

/// An exporter that says once that the collector is away, and once that it is back, and tells what it took.
///
/// Spans that cannot be sent are dropped: telemetry never holds up the work it tells of.
#[derive(Debug)]
struct Calm<E> {
    inner: E,
    away: AtomicBool,
}

impl<E> Calm<E> {
    fn around(inner: E) -> Self {
        Self {
            inner,
            away: AtomicBool::new(false),
        }
    }
}

impl<E: trace::SpanExporter> trace::SpanExporter for Calm<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let calls = calls(&batch);
        let outcome = self.inner.export(batch).await;
        let was_away = self.away.swap(outcome.is_err(), Ordering::Relaxed);
        if outcome.is_ok() && !calls.is_empty() {
            exported::tell(calls);
        }
        match outcome {
            Ok(()) if was_away => info!("spans are exported again"),
            Err(error) if !was_away => {
                warn!(%error, "spans cannot be exported and are dropped until they can")
            }
            _ => {}
        }
        // What is wrong has been said; the SDK would say it again with every batch.
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use opentelemetry::Context;
    use parking_lot::Mutex;

    use super::*;
    use crate::telemetry::told::Pen;

    fn wanted(variables: &[(&str, &str)]) -> bool {
        is_wanted(|name| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn spans_are_exported_only_where_a_collector_is_named() {
        assert!(!wanted(&[]));
        assert!(!wanted(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]));
        assert!(wanted(&[(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "http://127.0.0.1:4317"
        )]));
        assert!(wanted(&[(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "http://127.0.0.1:4317"
        )]));
    }

    #[test]
    fn the_standard_switches_turn_spans_off() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317");
        assert!(!wanted(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")]));
        assert!(!wanted(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")]));
        assert!(wanted(&[endpoint, ("OTEL_SDK_DISABLED", "false")]));
    }

    /// Takes nothing until it is let go, and counts.
    #[derive(Debug)]
    struct Stuck {
        gate: Arc<Mutex<()>>,
        taken: Arc<AtomicUsize>,
    }

    impl trace::SpanExporter for Stuck {
        async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
            drop(self.gate.lock());
            self.taken.fetch_add(batch.len(), Ordering::Relaxed);
            Ok(())
        }

        fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
            Ok(())
        }

        fn force_flush(&self) -> OTelSdkResult {
            Ok(())
        }
    }

    #[test]
    fn a_collector_that_is_stuck_costs_spans_and_not_memory() {
        let (gate, taken) = (Arc::new(Mutex::new(())), Arc::new(AtomicUsize::new(0)));
        let stuck = Stuck {
            gate: gate.clone(),
            taken: taken.clone(),
        };
        let held = gate.lock();
        let pen = Pen::through(Parts::before(batches(stuck)));
        let drawn = 2 * QUEUE;
        for _ in 0..drawn {
            pen.draw("write", &Context::new());
        }
        drop(held);
        pen.provider.force_flush().unwrap();
        let taken = taken.load(Ordering::Relaxed);
        // One batch was on its way while the queue filled up.
        let batch = 512;
        assert!(
            (QUEUE..=QUEUE + batch).contains(&taken),
            "{taken} of {drawn}"
        );
    }

    #[test]
    fn spans_say_which_replica_they_are_from() {
        let resource = resource("scheduler", "scheduler-1");
        let of = |key: &'static str| resource.get(&key.into()).map(|value| value.to_string());
        assert_eq!(of("service.name").as_deref(), Some("scheduler"));
        assert_eq!(of("service.instance.id").as_deref(), Some("scheduler-1"));
        assert!(of("service.version").is_some());
    }
}
