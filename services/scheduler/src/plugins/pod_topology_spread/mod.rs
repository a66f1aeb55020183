//! PodTopologySpread: the Pods of a group are spread evenly over domains.

mod filter;
mod score;

pub use filter::State;
pub use score::score;

use std::borrow::Cow;
use std::sync::Arc;

use setpoint_model::Selector;

use super::{node_affinity, taint_toleration};
use crate::affinity::Scope;
use crate::cluster::Cluster;
use crate::cluster_event::ClusterEvent;
use crate::group::Group;
use crate::node::NodeView;
use crate::pod::{NodeWants, PodView, Wants};
use crate::profile::{Pending, SpreadDefaults};
use crate::spread::{self, Constraint};

/// The kinds of controllers whose Pods are spread by default, as upstream.
const SPREAD_BY_DEFAULT: [&str; 3] = ["ReplicaSet", "ReplicationController", "StatefulSet"];

/// Returns whether a node counts for a constraint of the Pod.
fn includes(constraint: &Constraint, wants: &NodeWants, node: &NodeView) -> bool {
    (!constraint.honors_affinity || node_affinity::matches(wants, node))
        && (!constraint.honors_taints || taint_toleration::filter(wants, node).is_none())
}

/// Returns the constraints of a Pod that filter nodes (`is_hard`), or those that score them.
fn constraints<'p>(
    cluster: &Cluster<'_>,
    pending: Pending<'p>,
    is_hard: bool,
) -> Vec<Cow<'p, Constraint>> {
    let own = &pending.wants.spread;
    if own.is_empty() {
        let defaults = defaults(cluster, pending, is_hard);
        return defaults.into_iter().map(Cow::Owned).collect();
    }
    let own = own
        .iter()
        .filter(|constraint| constraint.is_hard == is_hard);
    own.map(Cow::Borrowed).collect()
}

/// Returns the default constraints of a Pod without its own: they spread the Pods of its controller and of the Services
/// that select it.
fn defaults(cluster: &Cluster<'_>, pending: Pending<'_>, is_hard: bool) -> Vec<Constraint> {
    let pod = pending.pod;
    let constraints = &pending.profile.spread.constraints;
    let mut constraints = constraints
        .iter()
        .filter(|constraint| spread::is_hard(constraint) == is_hard)
        .peekable();
    if constraints.peek().is_none() {
        return Vec::new();
    }
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
    constraints
        .map(|constraint| Constraint::default_of(constraint, &pod.meta, &group))
        .collect()
}

/// Returns the labels of nodes that constraints which filter are about.
fn hard_keys<'a>(defaults: &'a SpreadDefaults, wants: &'a Wants) -> Vec<&'a String> {
    let own = wants.spread.iter().filter(|constraint| constraint.is_hard);
    let own = own.map(|constraint| &constraint.topology_key);
    let defaults = defaults.constraints.iter();
    let defaults = defaults
        .filter(|constraint| wants.spread.is_empty() && spread::is_hard(constraint))
        .map(|constraint| &constraint.topology_key);
    own.chain(defaults).collect()
}

/// Returns whether a change may let the Pod fit: the number of Pods of a group changes, or the nodes that count.
pub fn hint(
    defaults: &SpreadDefaults,
    pod: &PodView,
    wants: &Wants,
    change: &ClusterEvent,
) -> bool {
    let mut hard = wants.spread.iter().filter(|constraint| constraint.is_hard);
    match change {
        // The group of default constraints depends on Services: each Pod of the namespace may be in it.
        ClusterEvent::Pod { old, new } if wants.spread.is_empty() => {
            let mut pods = old.iter().chain(new);
            pods.any(|other| other.meta.key.namespace == pod.meta.key.namespace)
        }
        ClusterEvent::Pod { old, new } => hard.any(|constraint| {
            let counts = |pod: &Option<Arc<PodView>>| {
                let pod = pod.as_deref();
                pod.is_some_and(|pod| constraint.group.may_contain(&pod.meta))
            };
            counts(old) != counts(new)
        }),
        ClusterEvent::Node { old, new } => {
            let keys = hard_keys(defaults, wants);
            let has_labels =
                |node: &NodeView| keys.iter().all(|key| node.labels().contains_key(*key));
            let counts = |node: Option<&NodeView>| node.filter(|node| has_labels(node)).cloned();
            let seen = |node: NodeView| (node.meta.labels, node.taints);
            counts(old.as_deref()).map(seen) != counts(new.as_deref()).map(seen)
        }
        ClusterEvent::Namespace
        | ClusterEvent::Claim { .. }
        | ClusterEvent::Volume(_)
        | ClusterEvent::Class
        | ClusterEvent::VolumeLimits => false,
    }
}
