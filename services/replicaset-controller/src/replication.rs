//! A view of a ReplicationController.

use std::sync::Arc;

use setpoint_controller::{Owns, View};
use setpoint_model::{Meta, Selector};
use setpoint_proto::apps::{ReplicaSetCondition, ReplicaSetStatus};
use setpoint_proto::core::{
    ReplicationController, ReplicationControllerCondition, ReplicationControllerStatus,
};
use setpoint_workload::PodView;

use crate::{ReplicaSetView, Replicated};

/// A ReplicationController as a ReplicaSet: only the form of its selector and its status differ.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicationControllerView(Arc<ReplicaSetView>);

impl View for ReplicationControllerView {
    type Object = ReplicationController;

    fn of(object: ReplicationController) -> Self {
        let spec = object.spec;
        let template = spec.template.unwrap_or_default();
        let labels = match spec.selector.is_empty() {
            true => &template.metadata.labels,
            false => &spec.selector,
        };
        let selector = match labels.is_empty() {
            // The gateway rejects it: it would match all Pods.
            true => Selector::nothing(),
            false => Selector::from_labels(labels),
        };
        Self(Arc::new(ReplicaSetView {
            meta: Meta::of(&object.metadata),
            replicas: usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or_default(),
            selector,
            template,
            min_ready_seconds: spec.min_ready_seconds,
            counts_terminating: false,
            status: set_status(object.status),
        }))
    }

    fn meta(&self) -> &Meta {
        &self.0.meta
    }
}

impl Owns<PodView> for ReplicationControllerView {
    fn selects(&self, pod: &PodView) -> bool {
        self.0.selects(pod)
    }
}

impl Replicated for ReplicationControllerView {
    fn into_set(self: Arc<Self>) -> Arc<ReplicaSetView> {
        self.0.clone()
    }

    fn status(status: ReplicaSetStatus) -> ReplicationControllerStatus {
        let conditions = status.conditions.into_iter();
        let conditions = conditions.map(|condition| ReplicationControllerCondition {
            r#type: condition.r#type,
            status: condition.status,
            last_transition_time: condition.last_transition_time,
            reason: condition.reason,
            message: condition.message,
        });
        ReplicationControllerStatus {
            replicas: status.replicas,
            fully_labeled_replicas: status.fully_labeled_replicas,
            observed_generation: status.observed_generation,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            conditions: conditions.collect(),
        }
    }
}

fn set_status(status: ReplicationControllerStatus) -> ReplicaSetStatus {
    let conditions = status.conditions.into_iter();
    let conditions = conditions.map(|condition| ReplicaSetCondition {
        r#type: condition.r#type,
        status: condition.status,
        last_transition_time: condition.last_transition_time,
        reason: condition.reason,
        message: condition.message,
    });
    ReplicaSetStatus {
        replicas: status.replicas,
        fully_labeled_replicas: status.fully_labeled_replicas,
        observed_generation: status.observed_generation,
        ready_replicas: status.ready_replicas,
        available_replicas: status.available_replicas,
        conditions: conditions.collect(),
        terminating_replicas: None,
    }
}
