//! The time for which a Pod may stay on a node.

use std::time::Duration;

use setpoint_model::placement::tolerates;
use setpoint_proto::core::{Taint, Toleration};

use crate::NodeView;
use crate::taints::NO_EXECUTE;

/// The time for which a Pod may stay on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// Without an end.
    Forever,
    /// From the moment at which it is first seen there with these taints.
    For(Duration),
    /// Not at all.
    No,
}

impl Stay {
    /// Returns what these tolerations permit. Of each taint, the first toleration that tolerates it counts, and of
    /// those the shortest, as upstream.
    pub fn of(tolerations: &[Toleration], taints: &[Taint]) -> Self {
        let mut shortest = None;
        for taint in taints {
            let tolerates = |one: &&Toleration| tolerates(std::slice::from_ref(one), taint);
            let Some(toleration) = tolerations.iter().find(tolerates) else {
                return Self::No;
            };
            let limit = toleration.toleration_seconds.map(|limit| limit.max(0));
            shortest = [shortest, limit].into_iter().flatten().min();
        }
        match shortest.map(i64::unsigned_abs) {
            None => Self::Forever,
            Some(0) => Self::No,
            Some(seconds) => Self::For(Duration::from_secs(seconds)),
        }
    }
}

/// Returns the taints of a node with the effect NoExecute.
pub(crate) fn executing(taints: &[Taint]) -> impl Iterator<Item = &Taint> {
    taints.iter().filter(|taint| taint.effect == NO_EXECUTE)
}

/// Returns whether the taints with the effect NoExecute of two versions of a node differ.
pub(crate) fn taints_differ(one: &NodeView, other: &NodeView) -> bool {
    !executing(&one.taints).eq(executing(&other.taints))
}

#[cfg(test)]
mod tests {
    use setpoint_controller::View as _;
    use setpoint_proto::core::Node;

    use super::*;

    fn taint(key: &str) -> Taint {
        Taint {
            key: key.into(),
            effect: NO_EXECUTE.into(),
            ..Default::default()
        }
    }

    fn toleration(key: &str, seconds: Option<i64>) -> Toleration {
        Toleration {
            key: key.into(),
            operator: "Exists".into(),
            toleration_seconds: seconds,
            ..Default::default()
        }
    }

    #[test]
    fn the_shortest_toleration_of_the_taints_counts() {
        let taints = [taint("a"), taint("b")];
        let stay = |tolerations: &[Toleration]| Stay::of(tolerations, &taints);
        let seconds = |seconds| Stay::For(Duration::from_secs(seconds));
        assert_eq!(Stay::of(&[], &[]), Stay::Forever);
        assert_eq!(stay(&[]), Stay::No);
        assert_eq!(stay(&[toleration("a", None)]), Stay::No);
        assert_eq!(stay(&[toleration("", None)]), Stay::Forever);
        let both = [toleration("a", Some(9)), toleration("b", Some(7))];
        assert_eq!(stay(&both), seconds(7));
        let one = [toleration("a", None), toleration("b", Some(7))];
        assert_eq!(stay(&one), seconds(7));
        let unused = [toleration("", Some(5)), toleration("c", Some(1))];
        assert_eq!(stay(&unused), seconds(5));
        for none in [0, -5, i64::MIN] {
            assert_eq!(stay(&[toleration("", Some(none))]), Stay::No);
        }
        assert!(matches!(
            stay(&[toleration("", Some(i64::MAX))]),
            Stay::For(_)
        ));
    }

    #[test]
    fn only_taints_that_execute_make_a_difference() {
        let node = |taints: &[Taint]| {
            let mut node = Node::default();
            node.spec.taints = taints.to_vec();
            NodeView::of(node)
        };
        let scheduling = Taint {
            effect: "NoSchedule".into(),
            ..taint("b")
        };
        let (none, one) = (node(&[]), node(&[taint("a")]));
        assert!(taints_differ(&none, &one));
        assert!(!taints_differ(&one, &one));
        assert!(!taints_differ(&none, &node(&[scheduling])));
    }
}
