//! The export of spans by OpenTelemetry's SDK, configured by its `OTEL_*` variables.

use std::env;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfig, BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider, SpanData,
    SpanExporter as Export,
};
use tracing::{info, warn};

/// The limit on the export of the last spans, when the process exits.
const SHUTDOWN: Duration = Duration::from_secs(3);
/// The default of `OTEL_BSP_SCHEDULE_DELAY`. Short, so that a process that is killed loses few spans.
const DELAY: Duration = Duration::from_millis(200);
/// The default of `OTEL_BSP_MAX_QUEUE_SIZE`: enough for a cascade of a thousand Pods, some 20 MiB.
const QUEUE: usize = 32_768;

/// Returns the tracer provider; `None` if no endpoint is set or tracing is disabled.
///
/// # Errors
/// If the endpoint or another variable is invalid.
pub(super) fn provider(
    service: &'static str,
    instance: &str,
) -> Result<Option<SdkTracerProvider>, ExporterBuildError> {
    if !is_enabled(|name| env::var(name).ok()) {
        return Ok(None);
    }
    let exporter = Reported {
        exporter: SpanExporter::builder().with_tonic().build()?,
        failing: AtomicBool::default(),
    };
    let batches = BatchSpanProcessor::builder(exporter)
        .with_batch_config(batches(|name| env::var(name).is_ok()))
        .build();
    let provider = SdkTracerProvider::builder()
        .with_resource(resource(service, instance))
        .with_span_processor(batches)
        .build();
    Ok(Some(provider))
}

/// Returns whether an endpoint is set and tracing is not disabled. `variable` returns the value of a variable.
fn is_enabled(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let endpoints = [
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ];
    let is = |name, value| set(name).is_some_and(|set| set.eq_ignore_ascii_case(value));
    let disabled = is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none");
    !disabled && endpoints.into_iter().any(|name| set(name).is_some())
}

/// Returns the SDK's batch settings, with other defaults. `is_set` returns whether a variable is set.
fn batches(is_set: impl Fn(&str) -> bool) -> BatchConfig {
    let mut config = BatchConfigBuilder::default();
    if !is_set("OTEL_BSP_SCHEDULE_DELAY") {
        config = config.with_scheduled_delay(DELAY);
    }
    if !is_set("OTEL_BSP_MAX_QUEUE_SIZE") {
        config = config.with_max_queue_size(QUEUE);
    }
    config.build()
}

/// Returns the resource of all spans; `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` override the service's own.
fn resource(service: &'static str, instance: &str) -> Resource {
    let ours = [
        KeyValue::new("service.name", service),
        KeyValue::new("service.instance.id", instance.to_owned()),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
    ];
    let set = Resource::builder().build();
    let set = set
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    let set = set.filter(|set| !set.value.as_str().starts_with("unknown_service"));
    Resource::builder_empty()
        .with_attributes(ours.into_iter().chain(set))
        .build()
}

/// Exports the last spans and ends the exporter's thread. Blocks a thread of the runtime's pool, since the
/// exporter's connection needs the runtime.
pub(super) async fn shutdown(provider: SdkTracerProvider) {
    let done = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(SHUTDOWN)).await;
    if let Ok(Err(error)) = done {
        warn!(%error, "the last spans were not exported");
    }
}

/// An exporter that logs when exports start to fail and when they succeed again. The SDK would log each failure.
#[derive(Debug)]
struct Reported {
    exporter: SpanExporter,
    failing: AtomicBool,
}

impl Export for Reported {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let exported = self.exporter.export(batch).await;
        let was_failing = self.failing.swap(exported.is_err(), Ordering::Relaxed);
        match exported {
            Err(error) if !was_failing => warn!(%error, "spans cannot be exported and are lost"),
            Ok(()) if was_failing => info!("spans are exported again"),
            _ => {}
        }
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317");

    fn wanted(variables: &[(&str, &str)]) -> bool {
        is_enabled(|name| {
            let set = variables.iter().find(|(key, _)| *key == name);
            set.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn spans_are_exported_only_if_an_endpoint_is_set() {
        assert!(!wanted(&[]) && !wanted(&[(ENDPOINT.0, "")]));
        assert!(wanted(&[ENDPOINT]));
        assert!(wanted(&[(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            ENDPOINT.1
        )]));
    }

    #[test]
    fn the_standard_variables_disable_the_export() {
        assert!(!wanted(&[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")]));
        assert!(!wanted(&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")]));
        assert!(wanted(&[ENDPOINT, ("OTEL_SDK_DISABLED", "false")]));
    }

    #[test]
    fn the_resource_names_service_and_replica() {
        let resource = resource("scheduler", "scheduler-1");
        let value = |key: &'static str| resource.get(&key.into()).map(|value| value.to_string());
        assert_eq!(value("service.name").as_deref(), Some("scheduler"));
        assert_eq!(value("service.instance.id").as_deref(), Some("scheduler-1"));
        assert!(value("service.version").is_some());
    }
}
