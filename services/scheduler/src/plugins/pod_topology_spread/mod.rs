//! PodTopologySpread: the Pods of a group are spread evenly over domains.

mod filter;
mod score;

pub use filter::State;
pub use score::score;

use setpoint_model::Selector;

use super::{node_affinity, taint_toleration};
use crate::affinity::Scope;
use crate::change::Change;
use crate::cluster::Cluster;
use crate::groups::Group;
use crate::node::NodeView;
use crate::pod::{NodeWants, PodView, Wants};
use crate::spread::Constraint;

/// The kinds of controllers whose Pods are spread by default, as upstream.
const SPREAD_BY_DEFAULT: [&str; 3] = ["ReplicaSet", "ReplicationController", "StatefulSet"];

/// Returns whether a node counts for a constraint of the Pod.
fn includes(constraint: &Constraint, wants: &NodeWants, node: &NodeView) -> bool {
    (!constraint.honors_affinity || node_affinity::matches(wants, node))
        && (!constraint.honors_taints || taint_toleration::filter(wants, node).is_none())
}

/// Returns the default constraints of a Pod without its own: they spread the Pods of its controller and of the Services that
/// select it.
fn defaults(cluster: &Cluster<'_>, pod: &PodView) -> Vec<Constraint> {
    let namespace = &pod.meta.key.namespace;
    let services = cluster.snapshot.services.get(namespace);
    let services = services.into_iter().flatten();
    let selecting = services.filter(|service| service.selects(&pod.meta));
    let labels: std::collections::BTreeMap<_, _> = selecting
        .flat_map(|service| service.selector.clone())
        .collect();
    let owner = pod.meta.owner.as_ref();
    let owner = owner.filter(|owner| SPREAD_BY_DEFAULT.contains(&owner.kind.as_str()));
    if labels.is_empty() && owner.is_none() {
        return Vec::new();
    }
    let scope = Scope::within(namespace, Selector::from_labels(&labels));
    let group = Group::remaining(scope, owner.map(|owner| owner.uid.clone()));
    Constraint::defaults(&group).into()
}

/// Returns whether a change may let the Pod fit: the number of Pods of a group changes, or the nodes that count.
pub fn hint(wants: &Wants, change: &Change) -> bool {
    let mut hard = wants.spread.iter().filter(|constraint| constraint.is_hard);
    match change {
        Change::Pod { old, new } => hard.any(|constraint| {
            let counts = |pod: &Option<std::sync::Arc<PodView>>| {
                let pod = pod.as_deref();
                pod.is_some_and(|pod| constraint.group.may_contain(pod))
            };
            counts(old) != counts(new)
        }),
        Change::Node { old, new } => {
            let has_labels = |node: &NodeView| {
                let mut keys = wants.spread.iter().filter(|constraint| constraint.is_hard);
                keys.all(|constraint| node.labels().contains_key(&constraint.topology_key))
            };
            let counts = |node: Option<&NodeView>| node.filter(|node| has_labels(node)).cloned();
            let seen = |node: NodeView| (node.meta.labels, node.taints);
            counts(old.as_deref()).map(seen) != counts(new.as_deref()).map(seen)
        }
        Change::Namespace | Change::Claim { .. } | Change::Volume(_) | Change::Class => false,
    }
}
