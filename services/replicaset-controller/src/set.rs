//! A ReplicaSet, as far as its Pods are concerned.

use setpoint_controller::{Owns, View};
use setpoint_model::{Meta, Selector};
use setpoint_proto::apps::{ReplicaSet, ReplicaSetStatus};
use setpoint_proto::core::PodTemplateSpec;

use crate::Pod;

/// How many Pods of which kind are wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// Who it is.
    pub meta: Meta,
    /// How many Pods there shall be.
    pub replicas: usize,
    /// Which Pods are meant.
    pub selector: Selector,
    /// What a new Pod looks like.
    pub template: PodTemplateSpec,
    /// How long a Pod must have been ready to count as available.
    pub min_ready_seconds: i32,
    /// What was last reported.
    pub status: ReplicaSetStatus,
}

impl View for Set {
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
            // One that cannot be read selects nothing; the gateway lets none in.
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

impl Owns<Pod> for Set {
    fn selects(&self, pod: &Pod) -> bool {
        self.selector.matches(&pod.labels)
    }
}

impl Set {
    /// What its Pods' names begin with.
    pub fn prefix(&self) -> String {
        format!("{}-", self.meta.key.name)
    }
}
