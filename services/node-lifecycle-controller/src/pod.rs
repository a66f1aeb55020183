//! A view of a Pod.

use setpoint_controller::View;
use setpoint_model::{Meta, condition, pod};
use setpoint_proto::core::{self, Toleration};

use crate::taints::NO_EXECUTE;

/// The reason of the condition `DisruptionTarget` of a Pod that is deleted because of taints of its node.
pub(crate) const BY_TAINT_MANAGER: &str = "DeletionByTaintManager";

/// The fields of a Pod that depend on its node. Kept small, since all Pods of the cluster are cached.
#[derive(Clone, Debug, PartialEq)]
pub struct PodView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// The node that it is bound to.
    pub node: Option<Box<str>>,
    /// Whether it is ready.
    pub ready: bool,
    /// Its tolerations of taints with the effect NoExecute.
    pub tolerations: Box<[Toleration]>,
    /// Whether its status says that it is deleted because of taints.
    pub disrupted: bool,
}

impl View for PodView {
    type Object = core::Pod;

    fn of(pod: core::Pod) -> Self {
        let mut meta = Meta::of(&pod.metadata);
        meta.labels.clear();
        meta.annotations.clear();
        let target = condition::get(&pod.status.conditions, pod::DISRUPTION_TARGET);
        let disrupted = target
            .is_some_and(|one| one.status == condition::TRUE && one.reason == BY_TAINT_MANAGER);
        let ready = pod::is_ready(&pod);
        let mut tolerations = pod.spec.tolerations;
        tolerations.retain(|one| ["", NO_EXECUTE].contains(&one.effect.as_str()));
        let node = pod.spec.node_name;
        Self {
            meta,
            node: (!node.is_empty()).then(|| node.into()),
            ready,
            tolerations: tolerations.into(),
            disrupted,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Pods are indexed by their node.
    fn tag(&self) -> Option<&str> {
        self.node.as_deref()
    }
}
