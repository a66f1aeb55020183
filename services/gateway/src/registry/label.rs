//! Names the object of a write on the request's span, as OpenTelemetry's conventions name Kubernetes' objects.

use opentelemetry::KeyValue;
use setpoint_proto::Here;
use setpoint_proto::here;

use super::Target;

/// Says on the current span what is written.
pub(super) fn label(target: &Target) {
    let here = Here::now();
    if !here.is_drawn() {
        return;
    }
    let namespace = here::in_namespace(&target.namespace);
    let name = KeyValue::new(target.kind.traced.as_str(), target.name.clone());
    here.describe(namespace.into_iter().chain([name]));
}
