//! The scores of nodes that a Pod fits on.

#![warn(clippy::arithmetic_side_effects)]

use std::collections::HashMap;

use setpoint_model::placement::tolerates;

use crate::pod::PodView;
use crate::snapshot::NodeInfo;

/// The maximum score of a criterion (upstream: `MaxNodeScore`).
const MAX: i64 = 100;
/// The weight of spreading (upstream's default for PodTopologySpread).
const SPREAD: i64 = 2;
/// The weight of taints with the effect PreferNoSchedule (upstream's default for TaintToleration).
const TAINTS: i64 = 3;

/// The maximum counts of the nodes that fit, by which those of each node are normalized.
#[derive(Clone, Copy, Debug, Default)]
pub struct Most {
    siblings: i64,
    intolerable: i64,
}

impl Most {
    /// Returns the maximum counts of the nodes.
    pub fn among<'a>(pod: &PodView, nodes: impl Iterator<Item = &'a NodeInfo>) -> Self {
        nodes.fold(Self::default(), |most, node| Self {
            siblings: most.siblings.max(node.siblings(pod)),
            intolerable: most.intolerable.max(intolerable(pod, node)),
        })
    }
}

/// Returns the score of a node: the free share of CPU and memory with the Pod, the few Pods of the same controller, and the
/// few taints with the effect PreferNoSchedule.
pub fn score(pod: &PodView, node: &NodeInfo, most: Most) -> i64 {
    let spread = fewest(node.siblings(pod), most.siblings);
    let welcome = fewest(intolerable(pod, node), most.intolerable);
    least_allocated(pod, node)
        .saturating_add(SPREAD.saturating_mul(spread))
        .saturating_add(TAINTS.saturating_mul(welcome))
}

/// Counts the taints with the effect PreferNoSchedule that the Pod does not tolerate.
fn intolerable(pod: &PodView, node: &NodeInfo) -> i64 {
    let tolerations = pod.wants.as_ref().map(|wants| &*wants.node.tolerations);
    let tolerations = tolerations.unwrap_or_default();
    let taints = node.view.discouraging.iter();
    let count = taints
        .filter(|taint| !tolerates(tolerations, taint))
        .count();
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns [`MAX`] for a count of 0, and 0 for the maximum (upstream: `DefaultNormalizeScore`, reversed).
fn fewest(count: i64, most: i64) -> i64 {
    let share = count.saturating_mul(MAX).checked_div(most);
    MAX.saturating_sub(share.unwrap_or_default())
}

fn least_allocated(pod: &PodView, node: &NodeInfo) -> i64 {
    let (has, used, wants) = (&node.view.allocatable, &node.nonzero, &pod.nonzero);
    let cpu = free(has.millicpu, used.millicpu, wants.millicpu);
    let memory = free(has.memory, used.memory, wants.memory);
    cpu.midpoint(memory)
}

/// Returns the free share of `has`, from 0 to [`MAX`].
fn free(has: i64, used: i64, wants: i64) -> i64 {
    let left = has.saturating_sub(used).saturating_sub(wants).max(0);
    let share = i128::from(left).saturating_mul(i128::from(MAX));
    let share = share.checked_div(i128::from(has)).unwrap_or_default();
    i64::try_from(share).unwrap_or_default().clamp(0, MAX)
}

/// The number of Pods of each controller on a node.
pub type Siblings = HashMap<String, i64>;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use setpoint_model::Owner;
    use setpoint_proto::core::Taint;

    use super::*;
    use crate::node::NodeView;

    #[test]
    fn a_node_with_half_of_the_most_gets_half_of_the_score() {
        assert_eq!([0, 1, 2].map(|count| fewest(count, 2)), [100, 50, 0]);
        assert_eq!(fewest(0, 0), 100);
        assert_eq!([0, 1, 2, 3].map(|count| fewest(count, 3)), [100, 67, 34, 0]);
    }

    /// Resources count once, siblings twice, taints thrice, as upstream's default weights.
    #[test]
    fn criteria_are_weighed() {
        let mut view = NodeView::default();
        (view.allocatable.millicpu, view.allocatable.memory) = (100, 1000);
        view.discouraging = vec![Taint::default()];
        let mut node = NodeInfo::new(Arc::new(view));
        node.siblings.insert("set".into(), 1);
        let mut pod = PodView {
            wants: Some(Box::default()),
            ..PodView::default()
        };
        (pod.nonzero.millicpu, pod.nonzero.memory) = (20, 600);
        let score = |pod: &PodView, siblings, intolerable| {
            let most = Most {
                siblings,
                intolerable,
            };
            score(pod, &node, most)
        };
        assert_eq!(score(&pod, 0, 1), 60 + 2 * 100);
        assert_eq!(score(&pod, 0, 2), 60 + 2 * 100 + 3 * 50);
        pod.meta.owner = Some(Owner {
            uid: "set".into(),
            ..Owner::default()
        });
        assert_eq!(score(&pod, 2, 2), 60 + 2 * 50 + 3 * 50);
        let most = Most::among(&pod, [&node].into_iter());
        assert_eq!((most.siblings, most.intolerable), (1, 1));
    }

    #[test]
    fn what_is_left_is_a_share_of_what_there_is() {
        assert_eq!(free(200, 50, 50), 50);
        assert_eq!(free(200, 50, 150), 0);
        assert_eq!(free(200, 300, 50), 0);
        assert_eq!(free(0, 0, 0), 0);
        assert_eq!(free(-5, 0, 0), 0);
        assert_eq!(free(i64::MAX, 0, 0), 100);
        assert_eq!(free(i64::MAX, i64::MAX, i64::MAX), 0);
    }
}
