//! The changes of caches that wake unschedulable Pods.

use std::sync::Arc;

use setpoint_controller::Delta;

use super::Scheduler;
use crate::cluster_event::ClusterEvent;
use crate::namespace::NamespaceView;
use crate::node::NodeView;
use crate::pod::PodView;
use crate::storage::{ClaimView, ClassView, CsiNodeView, VolumeView};

impl Scheduler {
    /// Wakes the unschedulable Pods that a changed Pod may let fit, and removes a Pod that needs no decision.
    pub fn pod_changed(&self, change: &Delta<PodView>) {
        let (old, new) = (&change.old, &change.new);
        ClusterEvent::of_pod(old.as_ref(), new.as_ref())
            .iter()
            .for_each(|change| self.wake(change));
        let Some(pod) = old.as_deref().or(new.as_deref()) else {
            return;
        };
        match new {
            Some(new) if new.schedulable().is_some() => {}
            Some(new) if new.wants.is_some() => self.unschedulable.remove(&pod.meta.key),
            _ => self.resolve(pod),
        }
    }

    /// Wakes the unschedulable Pods that a changed node may let fit.
    pub fn node_changed(&self, change: &Delta<NodeView>) {
        let differs = match (&change.old, &change.new) {
            (Some(old), Some(new)) => new.differs_from(old),
            _ => true,
        };
        if differs {
            self.wake(&ClusterEvent::Node {
                old: change.old.clone(),
                new: change.new.clone(),
            });
        }
    }

    /// Wakes the unschedulable Pods that the changed labels of a namespace may let fit.
    pub fn namespace_changed(&self, change: &Delta<NamespaceView>) {
        let labels = |namespace: &Option<Arc<NamespaceView>>| {
            let namespace = namespace.as_ref();
            namespace.map(|namespace| namespace.meta.labels.clone())
        };
        if change.old.is_some() && labels(&change.old) != labels(&change.new) {
            self.wake(&ClusterEvent::Namespace);
        }
    }

    /// Wakes the Pods that a changed claim may let fit.
    pub fn claim_changed(&self, change: &Delta<ClaimView>) {
        if let Some(new) = &change.new {
            self.wake(&ClusterEvent::Claim {
                old: change.old.clone(),
                new: new.clone(),
            });
        }
    }

    /// Wakes the Pods that a changed volume may let fit.
    pub fn volume_changed(&self, change: &Delta<VolumeView>) {
        let is_known = |new: &Arc<VolumeView>| {
            let old = change.old.as_ref();
            old.is_some_and(|old| {
                (&old.volume.claim, &old.volume.phase) == (&new.volume.claim, &new.volume.phase)
            })
        };
        if let Some(new) = change.new.as_ref().filter(|new| !is_known(new)) {
            self.wake(&ClusterEvent::Volume(new.clone()));
        }
    }

    /// Wakes the Pods that changed limits of a node may let fit.
    pub fn csi_node_changed(&self, change: &Delta<CsiNodeView>) {
        let limits =
            |node: &Option<Arc<CsiNodeView>>| node.as_ref().map(|node| node.limits.clone());
        if limits(&change.old) != limits(&change.new) {
            self.wake(&ClusterEvent::VolumeLimits);
        }
    }

    /// Wakes the Pods that a changed StorageClass may let fit.
    pub fn class_changed(&self, change: &Delta<ClassView>) {
        if change.new.is_some() {
            self.wake(&ClusterEvent::Class);
        }
    }
}
