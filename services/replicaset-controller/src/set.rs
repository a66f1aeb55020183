//! A view of a ReplicaSet.

use setpoint_controller::{Owns, View};
use setpoint_model::{Meta, Selector};
use setpoint_proto::apps::{ReplicaSet, ReplicaSetStatus};
use setpoint_proto::core::PodTemplateSpec;

use crate::PodView;

/// The fields of a ReplicaSet that the controller reads.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSetView {
    /// The metadata.
    pub meta: Meta,
    /// The desired number of Pods.
    pub replicas: usize,
    /// The parsed selector.
    pub selector: Selector,
    /// The Pod template.
    pub template: PodTemplateSpec,
    /// Seconds for which a Pod must be ready to count as available.
    pub min_ready_seconds: i32,
    /// The status that was last written.
    pub status: ReplicaSetStatus,
}

impl View for ReplicaSetView {
    type Object = ReplicaSet;

    fn of(set: ReplicaSet) -> Self {
        let selector = set
            .spec
            .selector
            .as_ref()
            .map(Selector::from_label_selector);
        Self {
            meta: Meta::of(&set.metadata),
            replicas: usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or_default(),
            // The gateway rejects invalid selectors.
            selector: selector
                .and_then(Result::ok)
                .unwrap_or_else(Selector::nothing),
            template: set.spec.template,
            min_ready_seconds: set.spec.min_ready_seconds,
            status: set.status,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Owns<PodView> for ReplicaSetView {
    fn selects(&self, pod: &PodView) -> bool {
        self.selector.matches(&pod.labels)
    }
}

impl ReplicaSetView {
    /// Returns the prefix of the names of its Pods.
    pub fn prefix(&self) -> String {
        format!("{}-", self.meta.key.name)
    }
}
