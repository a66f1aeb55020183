//! A view of a ReplicaSet, as the Deployment controller reads it.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::{View, orphan_tag};
use setpoint_model::{Meta, Target, Template};
use setpoint_proto::apps::{ReplicaSet, ReplicaSetStatus};

use crate::annotations::{self, DESIRED, MAX, REVISION};

/// The fields of a ReplicaSet that the controller reads.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSetView {
    /// The metadata.
    pub meta: Meta,
    /// The desired number of Pods.
    pub replicas: i32,
    /// The encoded template.
    pub template: Template,
    /// Seconds for which a Pod must be ready to count as available.
    pub min_ready_seconds: i32,
    /// The status.
    pub status: ReplicaSetStatus,
}

impl View for ReplicaSetView {
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

    /// Orphans are indexed by namespace.
    fn tag(&self) -> Option<&str> {
        orphan_tag(&self.meta)
    }
}

impl ReplicaSetView {
    /// Returns the revision of the rollout; 0 without a valid annotation.
    pub fn revision(&self) -> i64 {
        let revision = self.meta.annotation(REVISION);
        revision
            .and_then(|revision| revision.parse().ok())
            .unwrap_or_default()
    }

    /// Returns the Deployment's `replicas` when the set was last scaled.
    pub fn desired(&self) -> Option<i32> {
        self.size(DESIRED)
    }

    /// Returns the Deployment's maximum number of Pods when the set was last scaled.
    pub fn max(&self) -> Option<i32> {
        self.size(MAX)
    }

    /// Returns whether the status reflects the current generation.
    pub fn is_observed(&self) -> bool {
        self.status.observed_generation >= self.meta.generation
    }

    /// Returns the maximum number of Pods, given that the spec [is observed](Self::is_observed): creates and deletes
    /// may be pending.
    pub fn pods(&self) -> i32 {
        self.replicas.max(self.status.replicas)
    }

    /// Returns the number of available Pods that are not about to be deleted.
    pub fn available(&self) -> i32 {
        self.replicas.min(self.status.available_replicas)
    }

    /// Returns whether no Pod is left, not even a terminating one.
    pub fn is_empty(&self) -> bool {
        let terminating = self.status.terminating_replicas.unwrap_or_default();
        self.pods() <= 0 && terminating <= 0 && self.is_observed()
    }

    /// Returns whether its template is equal to this one, or is what the gateway stored for it.
    pub fn is_of_template(&self, template: &Template) -> bool {
        let stored = || annotations::stored(template, &self.template);
        self.template == *template || annotations::changed(stored(), self).is_empty()
    }

    /// Returns the precondition of writes to this version.
    pub fn target(&self) -> Target {
        Target::of(&self.meta)
    }

    /// Parses an annotation as a number of Pods: digits only, as upstream does.
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
    fn only_orphans_are_indexed_by_namespace() {
        let mut set = ReplicaSet::default();
        set.metadata.namespace = "default".into();
        assert_eq!(ReplicaSetView::of(set.clone()).tag(), Some("default"));
        set.metadata.owner_references.push(OwnerReference {
            controller: Some(true),
            ..Default::default()
        });
        assert_eq!(ReplicaSetView::of(set).tag(), None);
    }
}
