//! A target in the store and in traces.

use opentelemetry::KeyValue;
use setpoint_kinds::Target;
use setpoint_store::keys;
use setpoint_telemetry::{Span, namespace_attribute};

/// Returns the path of an object in the store.
pub(crate) fn path(target: &Target) -> String {
    keys::object(target.kind, &target.key())
}

/// Sets the attributes of an object on the current span, by OpenTelemetry's conventions for Kubernetes.
pub(crate) fn set_span_attributes(target: &Target) {
    let span = Span::current();
    if span.is_recording() {
        let name = KeyValue::new(target.kind.traced.as_str(), target.name.clone());
        let namespace = namespace_attribute(&target.namespace);
        span.set_attributes(namespace.into_iter().chain([name]));
    }
}
