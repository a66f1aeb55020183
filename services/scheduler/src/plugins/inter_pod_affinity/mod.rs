//! InterPodAffinity: Pods run in the same domain as others, or in none with them.

mod filter;
mod score;

pub use filter::State;
pub use score::score;

use crate::affinity::{Affinity, Term};
use crate::cluster_event::ClusterEvent;
use crate::node::NodeView;
use crate::pod::PodView;

/// Returns whether a change may let the Pod fit.
pub fn hint(pod: &PodView, change: &ClusterEvent) -> bool {
    match change {
        ClusterEvent::Pod { old, new } => pod_helps(pod, old.as_deref(), new.as_deref()),
        ClusterEvent::Node {
            old,
            new: Some(new),
        } => old
            .as_deref()
            .is_none_or(|old| moves_domains(pod, old, new)),
        ClusterEvent::Node { new: None, .. } => false,
        ClusterEvent::Namespace => true,
        ClusterEvent::Claim { .. }
        | ClusterEvent::Volume(_)
        | ClusterEvent::Class
        | ClusterEvent::VolumeLimits => false,
    }
}

/// Returns whether a Pod began to match the affinity, or ceased to match the anti-affinity, of the waiting Pod; or
/// whether its own anti-affinity ceased to be about the waiting Pod.
fn pod_helps(pod: &PodView, old: Option<&PodView>, new: Option<&PodView>) -> bool {
    let none = Affinity::default();
    let own = pod.affinity.as_deref().unwrap_or(&none);
    let attracts = |other: Option<&PodView>| {
        !own.required.is_empty()
            && other.is_some_and(|other| own.required.iter().all(|term| is_about(term, other)))
    };
    let repels = |other: Option<&PodView>| {
        other.is_some_and(|other| own.required_anti.iter().any(|term| is_about(term, other)))
    };
    let is_repelled = |other: Option<&PodView>| {
        let terms = other.and_then(|other| other.affinity.as_deref());
        terms.is_some_and(|terms| terms.required_anti.iter().any(|term| is_about(term, pod)))
    };
    (attracts(new) && !attracts(old))
        || (repels(old) && !repels(new))
        || (is_repelled(old) && !is_repelled(new))
}

fn is_about(term: &Term, pod: &PodView) -> bool {
    term.scope.may_contain(&pod.meta)
}

/// Returns whether a node is in another domain of a term of the Pod, or of any key if the Pod has no terms: then those
/// of others reject it.
fn moves_domains(pod: &PodView, old: &NodeView, new: &NodeView) -> bool {
    let moves = |term: &Term| {
        let key = &term.topology_key;
        old.labels().get(key) != new.labels().get(key)
    };
    old.labels() != new.labels()
        && pod.affinity.as_deref().is_none_or(|own| {
            let terms = own.required.iter().chain(&own.required_anti);
            terms.clone().next().is_none() || terms.clone().any(moves)
        })
}
