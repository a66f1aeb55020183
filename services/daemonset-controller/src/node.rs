//! A view of a node.

use std::mem;

use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_proto::core::{Node, Taint};

/// The effect of taints that keep away Pods that have no node yet.
const NO_SCHEDULE: &str = "NoSchedule";
/// The effect of taints that also end running Pods.
const NO_EXECUTE: &str = "NoExecute";

/// The fields of a node that decide whether a DaemonSet runs on it.
///
/// Its conditions are not among them: the taints that follow from them decide, as upstream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeView {
    /// The metadata and labels, without annotations.
    pub meta: Meta,
    /// Taints with the effect NoSchedule or NoExecute.
    pub taints: Vec<Taint>,
}

impl View for NodeView {
    type Object = Node;

    fn of(node: Node) -> Self {
        let mut meta = Meta::of(&node.metadata);
        mem::take(&mut meta.annotations);
        let mut taints = node.spec.taints;
        taints.retain(|taint| taint.effect == NO_SCHEDULE || taint.effect == NO_EXECUTE);
        Self { meta, taints }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl NodeView {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.meta.key.name
    }
}

/// Returns whether a taint ends running Pods.
pub(crate) fn executes(taint: &Taint) -> bool {
    taint.effect == NO_EXECUTE
}
