//! A view of a Node.

use setpoint_controller::View;
use setpoint_model::{Meta, condition};
use setpoint_proto::core;

/// On a node that its operator has declared dead: what runs there will not end by itself.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The fields of a Node that decide over Pods that are being deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// Whether it has the taint `out-of-service` and is not ready.
    pub out_of_service: bool,
}

impl View for NodeView {
    type Object = core::Node;

    fn of(node: core::Node) -> Self {
        let mut meta = Meta::of(&node.metadata);
        meta.labels.clear();
        meta.annotations.clear();
        let tainted = node.spec.taints.iter().any(|one| one.key == OUT_OF_SERVICE);
        let ready = condition::is_true(&node.status.conditions, "Ready");
        Self {
            meta,
            out_of_service: tainted && !ready,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}
