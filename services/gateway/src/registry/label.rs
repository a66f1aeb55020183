//! Names the object of a write on the request's span, as OpenTelemetry's conventions name Kubernetes' objects.

use opentelemetry::KeyValue;
use setpoint_proto::Here;
use setpoint_proto::here;
use tracing::Span;

use super::Target;

/// Says on the current span what is written.
pub(super) fn label(target: &Target) {
    let span = Span::current();
    if span.is_none() {
        return;
    }
    let namespace = here::in_namespace(&target.namespace);
    let key = format!("k8s.{}.name", target.kind.singular);
    let name = KeyValue::new(key, target.name.clone());
    Here::of(&span).describe(namespace.into_iter().chain([name]));
}
