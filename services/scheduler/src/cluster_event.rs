//! Changes of the cluster that may let unschedulable Pods fit.

use std::sync::Arc;

use crate::node::NodeView;
use crate::pod::PodView;
use crate::storage::{ClaimView, VolumeView};

/// A change that was observed, or that follows from the scheduler's own writes.
#[derive(Clone, Debug)]
pub enum ClusterEvent {
    /// A Pod on a node appeared, changed or left it, by ending or otherwise.
    Pod {
        /// The Pod before; `None` if it was on no node.
        old: Option<Arc<PodView>>,
        /// The Pod now; `None` if it is on no node.
        new: Option<Arc<PodView>>,
    },
    /// A node appeared, changed or is gone.
    Node {
        /// The node before.
        old: Option<Arc<NodeView>>,
        /// The node now.
        new: Option<Arc<NodeView>>,
    },
    /// The labels of a namespace changed.
    Namespace,
    /// A claim appeared or changed.
    Claim {
        /// The claim before.
        old: Option<Arc<ClaimView>>,
        /// The claim now.
        new: Arc<ClaimView>,
    },
    /// A volume appeared or changed.
    Volume(Arc<VolumeView>),
    /// A StorageClass appeared or changed.
    Class,
    /// The numbers of volumes that can be attached to a node changed.
    VolumeLimits,
}

impl ClusterEvent {
    /// Returns the change that a Pod leaves room: its own, or what was reserved for it.
    pub const fn left(pod: Arc<PodView>) -> Self {
        Self::Pod {
            old: Some(pod),
            new: None,
        }
    }

    /// Returns the changes that another Pod may wait for, if a Pod changes from `old` to `new`.
    pub fn of_pod(old: Option<&Arc<PodView>>, new: Option<&Arc<PodView>>) -> Vec<Self> {
        let on_node = |pod: Option<&Arc<PodView>>| {
            let pod = pod.filter(|pod| pod.occupies().is_some());
            pod.cloned()
        };
        let mut changes = Vec::new();
        let (was, is) = (on_node(old), on_node(new));
        let differs = match (&was, &is) {
            (Some(was), Some(is)) => {
                was.meta.deleting != is.meta.deleting
                    || was.meta.labels != is.meta.labels
                    || was.requests != is.requests
            }
            (was, is) => was.is_some() || is.is_some(),
        };
        if differs {
            changes.push(Self::Pod { old: was, new: is });
        }
        let reserved = old.and_then(|old| old.nominated());
        let used = new.and_then(|new| new.nominated().or(new.occupies()));
        if let Some(old) = old.filter(|_| reserved.is_some() && reserved != used) {
            changes.push(Self::left(old.clone()));
        }
        changes
    }

    /// Returns whether a plugin accepts a node that is new, or that it rejected before.
    pub fn node_fits_now(&self, rejects: impl Fn(&NodeView) -> bool) -> bool {
        let Self::Node {
            old,
            new: Some(new),
        } = self
        else {
            return false;
        };
        old.as_deref().is_none_or(&rejects) && !rejects(new)
    }

    /// Returns whether a node was added.
    pub const fn adds_node(&self) -> bool {
        matches!(
            self,
            Self::Node {
                old: None,
                new: Some(_)
            }
        )
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// Checks C6.
    #[test]
    fn other_pods_hear_of_a_pod_that_comes_changes_leaves_or_gives_up_its_reservation() {
        let on_node = PodView {
            node: Some("a".into()),
            ..PodView::default()
        };
        let changed = |change: fn(&mut PodView)| {
            let mut pod = on_node.clone();
            change(&mut pod);
            pod
        };
        let free = PodView {
            wants: Some(Box::default()),
            ..PodView::default()
        };
        let nominated = |node: &str| {
            let mut pod = free.clone();
            let wants = pod.wants.as_mut().expect("it waits");
            wants.status.nominated_node_name = node.into();
            pod
        };
        let reserved = nominated("a");
        let ended = changed(|pod| pod.ended = true);
        let labeled = changed(|pod| _ = pod.meta.labels.insert("app".into(), "web".into()));
        let smaller = changed(|pod| pod.requests.millicpu = -5);
        let leaving = changed(|pod| pod.meta.deleting = true);
        let started = changed(|pod| pod.started = Some(Timestamp::UNIX_EPOCH));
        let elsewhere = changed(|pod| pod.node = Some("b".into()));
        // The Pod before and after, whether it counts as on a node before and after, for each change.
        type Case<'a> = (Option<&'a PodView>, Option<&'a PodView>, &'a [(bool, bool)]);
        let cases: [Case<'_>; 13] = [
            (None, Some(&on_node), &[(false, true)]),
            (Some(&free), Some(&on_node), &[(false, true)]),
            (Some(&on_node), None, &[(true, false)]),
            (Some(&on_node), Some(&ended), &[(true, false)]),
            (Some(&on_node), Some(&labeled), &[(true, true)]),
            (Some(&on_node), Some(&smaller), &[(true, true)]),
            (Some(&on_node), Some(&leaving), &[(true, true)]),
            (Some(&on_node), Some(&started), &[]),
            (Some(&ended), None, &[]),
            (None, Some(&free), &[]),
            (Some(&reserved), None, &[(true, false)]),
            (Some(&reserved), Some(&on_node), &[(false, true)]),
            (
                Some(&reserved),
                Some(&elsewhere),
                &[(false, true), (true, false)],
            ),
        ];
        for (old, new, expected) in cases {
            let arc = |pod: &PodView| Arc::new(pod.clone());
            let (old, new) = (old.map(arc), new.map(arc));
            let changes = ClusterEvent::of_pod(old.as_ref(), new.as_ref());
            let sides = changes.iter().map(|change| match change {
                ClusterEvent::Pod { old, new } => (old.is_some(), new.is_some()),
                other => panic!("unexpected: {other:?}"),
            });
            assert_eq!(sides.collect::<Vec<_>>(), expected, "{old:?} {new:?}");
        }
    }
}
