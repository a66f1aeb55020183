//! TaintToleration: nodes repel Pods that do not tolerate their taints.

use setpoint_model::placement::tolerates;

use super::score::{self, Preference};
use crate::cluster_event::ClusterEvent;
use crate::node::NodeView;
use crate::pod::NodeWants;
use crate::reason::FilterReason;
use crate::snapshot::NodeInfo;

/// Returns why the node cannot take the Pod: the first taint with the effect NoSchedule or NoExecute that it does not
/// tolerate.
pub fn filter(wants: &NodeWants, node: &NodeView) -> Option<FilterReason> {
    let mut taints = node.taints.iter();
    let taint = taints.find(|taint| !tolerates(&wants.tolerations, taint))?;
    Some(FilterReason::Taint {
        key: taint.key.clone(),
        value: taint.value.clone(),
    })
}

/// Returns whether a change may let the Pod fit.
pub fn hint(wants: &NodeWants, change: &ClusterEvent) -> bool {
    change.node_fits_now(|node| filter(wants, node).is_some())
}

/// Returns the scores of nodes: the fewer taints with the effect PreferNoSchedule that the Pod does not tolerate, the
/// higher.
pub fn score(wants: &NodeWants, nodes: &[&NodeInfo]) -> Vec<i64> {
    let intolerable = |node: &&NodeInfo| {
        let taints = node.view.discouraging.iter();
        let taints = taints.filter(|taint| !tolerates(&wants.tolerations, taint));
        i64::try_from(taints.count()).unwrap_or(i64::MAX)
    };
    let mut counts = nodes.iter().map(intolerable).collect::<Vec<_>>();
    score::normalize(&mut counts, Preference::Low);
    counts
}
