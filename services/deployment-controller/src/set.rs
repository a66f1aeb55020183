//! A ReplicaSet, as the Deployment that owns it reads it.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::View;
use setpoint_model::{Meta, Target, Template};
use setpoint_proto::apps::{ReplicaSet, ReplicaSetStatus};

use crate::annotations::{self, DESIRED, MAX, REVISION};

/// The Pods of one template.
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// Who it is.
    pub meta: Meta,
    /// How many Pods it shall have.
    pub replicas: i32,
    /// The template of its Pods, packed.
    pub template: Template,
    /// How long a Pod must have been ready to count as available.
    pub min_ready_seconds: i32,
    /// What its controller last reported.
    pub status: ReplicaSetStatus,
}

impl View for Set {
    type Object = ReplicaSet;

    fn of(set: ReplicaSet) -> Self {
        Self {
            meta: Meta::of(&set.metadata),
            replicas: set.spec.replicas.unwrap_or(1).max(0),
            template: Template::of(&set.spec.template),
            min_ready_seconds: set.spec.min_ready_seconds,
            status: set.status,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Orphans are found by their namespace.
    fn tag(&self) -> Option<&str> {
        self.meta
            .owner
            .is_none()
            .then_some(&self.meta.key.namespace)
    }
}

impl Set {
    /// Which rollout it stands for; 0 if nobody numbered it.
    pub fn revision(&self) -> i64 {
        let revision = self.meta.annotation(REVISION);
        revision
            .and_then(|revision| revision.parse().ok())
            .unwrap_or_default()
    }

    /// How many Pods the Deployment wanted when the set was last scaled.
    pub fn desired(&self) -> Option<i32> {
        self.size(DESIRED)
    }

    /// How many Pods the Deployment allowed when the set was last scaled.
    pub fn max(&self) -> Option<i32> {
        self.size(MAX)
    }

    /// Has its controller reported on what it was last told?
    pub fn has_followed(&self) -> bool {
        self.status.observed_generation >= self.meta.generation
    }

    /// How many Pods there may be, given that it has followed: not all of them may be made or deleted yet.
    pub fn pods(&self) -> i32 {
        self.replicas.max(self.status.replicas)
    }

    /// How many of the wanted Pods are available: others are about to be deleted.
    pub fn available(&self) -> i32 {
        self.replicas.min(self.status.available_replicas)
    }

    /// Is the last of its Pods gone?
    pub fn is_empty(&self) -> bool {
        let terminating = self.status.terminating_replicas.unwrap_or_default();
        self.pods() <= 0 && terminating <= 0 && self.has_followed()
    }

    /// Returns whether it is the set of this template: it has an equal one, or what the gateway made of this one.
    pub fn is_of_template(&self, template: &Template) -> bool {
        let stored = || annotations::stored(template, &self.template);
        self.template == *template || annotations::news(stored(), self).is_empty()
    }

    /// For writes that are meant for this version of it.
    pub fn target(&self) -> Target {
        Target::of(&self.meta)
    }

    /// A number of Pods; nothing but digits, as upstream reads them.
    fn size(&self, annotation: &str) -> Option<i32> {
        let size = self.meta.annotation(annotation)?;
        let unsigned = !size.starts_with(['+', '-']);
        unsigned.then(|| size.parse().ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::meta::OwnerReference;

    use super::*;

    #[test]
    fn orphans_alone_are_found_by_their_namespace() {
        let mut set = ReplicaSet::default();
        set.metadata.namespace = "default".into();
        assert_eq!(Set::of(set.clone()).tag(), Some("default"));
        set.metadata.owner_references.push(OwnerReference {
            controller: Some(true),
            ..Default::default()
        });
        assert_eq!(Set::of(set).tag(), None);
    }
}
