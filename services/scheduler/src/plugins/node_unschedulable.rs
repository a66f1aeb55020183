//! NodeUnschedulable: a cordoned node takes only Pods that tolerate that.

use setpoint_model::placement::tolerates;
use setpoint_proto::core::Taint;

use crate::cluster_event::ClusterEvent;
use crate::node::NodeView;
use crate::pod::NodeWants;
use crate::reason::FilterReason;

/// Returns why the node cannot take the Pod.
pub fn filter(wants: &NodeWants, node: &NodeView) -> Option<FilterReason> {
    let refused = node.unschedulable && !tolerates(&wants.tolerations, &cordon());
    refused.then_some(FilterReason::Unschedulable)
}

/// Returns whether a change may let the Pod fit.
pub fn hint(wants: &NodeWants, change: &ClusterEvent) -> bool {
    change.node_fits_now(|node| filter(wants, node).is_some())
}

/// Returns the taint that `spec.unschedulable` implies.
fn cordon() -> Taint {
    Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Default::default()
    }
}
