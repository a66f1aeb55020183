//! NodeAffinity: the labels that a Pod requires or prefers of its node.

use std::collections::BTreeMap;

use setpoint_model::placement;

use super::score::{self, Preference};
use crate::cluster_event::ClusterEvent;
use crate::node::NodeView;
use crate::pod::{NodeWants, Wants};
use crate::profile::AddedAffinity;
use crate::reason::FilterReason;
use crate::snapshot::NodeInfo;

/// Returns why the node cannot take the Pod.
pub fn filter(added: &AddedAffinity, wants: &NodeWants, node: &NodeView) -> Option<FilterReason> {
    if !is_allowed(added, node) {
        return Some(FilterReason::EnforcedAffinity);
    }
    (!matches(wants, node)).then_some(FilterReason::NodeAffinity)
}

/// Returns whether a node has the labels that the profile requires.
fn is_allowed(added: &AddedAffinity, node: &NodeView) -> bool {
    let terms = added.required.as_deref();
    placement::is_wanted(&BTreeMap::new(), terms, node.name(), node.labels())
}

/// Returns whether a node has the labels that the Pod requires.
pub fn matches(wants: &NodeWants, node: &NodeView) -> bool {
    let terms = wants.terms.as_deref();
    placement::is_wanted(&wants.selector, terms, node.name(), node.labels())
}

/// Returns whether a change may let the Pod fit.
pub fn hint(added: &AddedAffinity, wants: &NodeWants, change: &ClusterEvent) -> bool {
    change.node_fits_now(|node| filter(added, wants, node).is_some())
}

/// Returns the scores of nodes: the sums of the weights of preferred terms that match, of the Pod and of the profile;
/// `None` without such terms.
pub fn score(added: &AddedAffinity, wants: &Wants, nodes: &[&NodeInfo]) -> Option<Vec<i64>> {
    let preferred = || wants.preferred.iter().chain(&added.preferred);
    preferred().next()?;
    let sum = |node: &&NodeInfo| {
        let (name, labels) = (node.view.name(), node.view.labels());
        let terms = preferred().filter(|term| placement::matches(&term.preference, name, labels));
        terms.fold(0i64, |sum, term| sum.saturating_add(term.weight.into()))
    };
    let mut sums = nodes.iter().map(sum).collect::<Vec<_>>();
    score::normalize(&mut sums, Preference::High);
    Some(sums)
}
