//! Spans on their way to an OpenTelemetry collector, as the standard `OTEL_*` variables ask.

use std::env;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::{EnvResourceDetector, ResourceDetector};
use setpoint_proto::exported;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::debug;

use super::callers::Callers;
use super::collector::Collector;
use super::courier::Courier;
use super::environment::{self, Environment};
use super::outbox::Outbox;
use super::parts::Parts;
use super::scribe::Scribe;

/// What spans go through.
///
/// ```text
/// scribe ─▶ drafts ─▶ parts ─▶ callers ─▶ outbox ─▶ courier ─▶ collector
/// ```
pub struct Spans {
    pub scribe: Scribe,
    pub callers: Callers,
    parts: Parts,
    outbox: Outbox,
    courier: JoinHandle<()>,
}

impl Spans {
    /// Sends the last ones, within a time limit: a collector that hangs does not keep the process.
    pub async fn finish(self, limit: Duration) {
        self.parts.release();
        self.callers.release();
        self.outbox.close();
        if timeout(limit, self.courier).await.is_err() {
            debug!("the last spans are lost");
        }
    }
}

/// The way to the collector, or `None` where none is named: then spans cost next to nothing.
pub fn begin(service: &'static str, instance: &str) -> Result<Option<Spans>, environment::Error> {
    let Some(environment) = Environment::read(|name| env::var(name).ok())? else {
        return Ok(None);
    };
    let Environment {
        endpoint,
        headers,
        pace,
        sampler,
    } = environment;
    let resource = resource(service, instance);
    let collector = Collector::at(&endpoint, headers, &resource);
    let outbox = Outbox::new(pace);
    let callers = Callers::before(outbox.clone());
    let parts = Parts::before(callers.clone());
    let scribe = Scribe::new(parts.clone(), sampler);
    exported::begin();
    let courier = tokio::spawn(Courier::between(outbox.clone(), collector).run());
    Ok(Some(Spans {
        scribe,
        callers,
        parts,
        outbox,
        courier,
    }))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_say_which_replica_they_are_from() {
        let resource = resource("scheduler", "scheduler-1");
        let of = |key: &'static str| resource.get(&key.into()).map(|value| value.to_string());
        assert_eq!(of("service.name").as_deref(), Some("scheduler"));
        assert_eq!(of("service.instance.id").as_deref(), Some("scheduler-1"));
        assert!(of("service.version").is_some());
    }
}
