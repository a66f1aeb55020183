//! A view of a ReplicaSet.

use std::sync::Arc;

use setpoint_controller::{Owns, View, selector};
use setpoint_model::{Meta, Selector};
use setpoint_proto::Resource;
use setpoint_proto::apps::{ReplicaSet, ReplicaSetStatus};
use setpoint_proto::core::PodTemplateSpec;
use setpoint_workload::PodView;

/// A view of a kind whose objects each keep a number of Pods.
pub trait Replicated: Owns<PodView> {
    /// Returns the view as that of a ReplicaSet.
    fn into_set(self: Arc<Self>) -> Arc<ReplicaSetView>;
    /// Returns the status of a ReplicaSet as that of the kind.
    fn status(status: ReplicaSetStatus) -> <Self::Object as Resource>::Status;
}

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
    /// Whether the status has the number of terminating Pods.
    pub counts_terminating: bool,
    /// The status that was last written.
    pub status: ReplicaSetStatus,
}

impl View for ReplicaSetView {
    type Object = ReplicaSet;

    fn of(set: ReplicaSet) -> Self {
        Self {
            meta: Meta::of(&set.metadata),
            replicas: usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or_default(),
            selector: selector(set.spec.selector.as_ref()),
            template: set.spec.template,
            min_ready_seconds: set.spec.min_ready_seconds,
            counts_terminating: true,
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

impl Replicated for ReplicaSetView {
    fn into_set(self: Arc<Self>) -> Arc<ReplicaSetView> {
        self
    }

    fn status(status: ReplicaSetStatus) -> ReplicaSetStatus {
        status
    }
}

impl ReplicaSetView {
    /// Returns the prefix of the names of its Pods.
    pub fn prefix(&self) -> String {
        format!("{}-", self.meta.key.name)
    }
}
