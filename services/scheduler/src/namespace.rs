//! The scheduler's view of a namespace.

use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_proto::core::Namespace;

/// A namespace: its labels, which terms of affinity select it by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamespaceView {
    /// The metadata.
    pub meta: Meta,
}

impl View for NamespaceView {
    type Object = Namespace;

    fn of(namespace: Namespace) -> Self {
        Self {
            meta: Meta::of(&namespace.metadata),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}
