//! NodePorts: a host port of a node is for one Pod.

use setpoint_model::HostPort;

use crate::cluster_event::ClusterEvent;
use crate::pod::PodView;
use crate::reason::FilterReason;
use crate::snapshot::NodeInfo;

/// Returns why the node cannot take the Pod.
pub fn filter(pod: &PodView, node: &NodeInfo) -> Option<FilterReason> {
    conflict(&pod.ports, &node.ports).then_some(FilterReason::Ports)
}

/// Returns whether a change may let the Pod fit: a node is added, or a Pod with one of its ports leaves.
pub fn hint(pod: &PodView, change: &ClusterEvent) -> bool {
    match change {
        ClusterEvent::Pod {
            old: Some(old),
            new: None,
        } => conflict(&pod.ports, &old.ports),
        change => change.adds_node(),
    }
}

fn conflict(wanted: &[HostPort], taken: &[HostPort]) -> bool {
    let is_taken = |port: &HostPort| taken.iter().any(|other| port.conflicts_with(other));
    wanted.iter().any(is_taken)
}
