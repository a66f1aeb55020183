//! NodeAffinity: the labels that a Pod requires or prefers of its node.

use setpoint_model::placement;

use super::score::{self, Preference};
use crate::change::Change;
use crate::node::NodeView;
use crate::pod::{NodeWants, Wants};
use crate::reason::FilterReason;
use crate::snapshot::NodeInfo;

/// Returns why the node cannot take the Pod.
pub fn filter(wants: &NodeWants, node: &NodeView) -> Option<FilterReason> {
    (!matches(wants, node)).then_some(FilterReason::NodeAffinity)
}

/// Returns whether a node has the labels that the Pod requires.
pub fn matches(wants: &NodeWants, node: &NodeView) -> bool {
    let terms = wants.terms.as_deref();
    placement::is_wanted(&wants.selector, terms, node.name(), node.labels())
}

/// Returns whether a change may let the Pod fit.
pub fn hint(wants: &NodeWants, change: &Change) -> bool {
    change.node_fits_now(|node| !matches(wants, node))
}

/// Returns the scores of nodes: the sums of the weights of preferred terms that match; `None` without such terms.
pub fn score(wants: &Wants, nodes: &[&NodeInfo]) -> Option<Vec<i64>> {
    if wants.preferred.is_empty() {
        return None;
    }
    let sum = |node: &&NodeInfo| {
        let (name, labels) = (node.view.name(), node.view.labels());
        let terms = wants.preferred.iter();
        let terms = terms.filter(|term| placement::matches(&term.preference, name, labels));
        terms.fold(0i64, |sum, term| sum.saturating_add(term.weight.into()))
    };
    let mut sums = nodes.iter().map(sum).collect::<Vec<_>>();
    score::normalize(&mut sums, Preference::High);
    Some(sums)
}
