//! Names the object of a write on the request's span, as OpenTelemetry's conventions name Kubernetes' objects.

use setpoint_proto::cause::Label as _;
use tracing::Span;

use super::Target;

/// Says on the current span what is written.
pub(super) fn label(target: &Target) {
    let span = Span::current();
    if span.is_none() {
        return;
    }
    if !target.namespace.is_empty() {
        span.label("k8s.namespace.name", target.namespace.clone());
    }
    let key = format!("k8s.{}.name", target.kind.singular);
    span.label(key, target.name.clone());
}
