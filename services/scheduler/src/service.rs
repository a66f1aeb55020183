//! The scheduler's view of a Service.

use std::collections::BTreeMap;

use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_proto::core::Service;

/// A Service: the Pods that it selects are spread by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceView {
    /// The metadata.
    pub meta: Meta,
    /// The labels of its Pods; a Service without any selects no Pods.
    pub selector: BTreeMap<String, String>,
}

impl View for ServiceView {
    type Object = Service;

    fn of(service: Service) -> Self {
        Self {
            meta: Meta::of(&service.metadata),
            selector: service.spec.selector,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl ServiceView {
    /// Returns whether it selects a Pod.
    pub fn selects(&self, pod: &Meta) -> bool {
        let mut labels = self.selector.iter();
        !self.selector.is_empty()
            && self.meta.key.namespace == pod.key.namespace
            && labels.all(|(key, value)| pod.labels.get(key) == Some(value))
    }
}
