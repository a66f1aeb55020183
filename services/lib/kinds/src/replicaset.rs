//! ReplicaSet: one replica by default, and an immutable selector.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::selector::Selector;
use setpoint_proto::apps::ReplicaSet;
use setpoint_proto::setpoint::Wait;

use super::template;
use super::{Replicas, Role, StoredKind};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec;
use crate::validation::warnings::{Warnings, warn_of_pod_names};
use crate::waits::{Records, Rollout, failures};

impl StoredKind for ReplicaSet {
    template::workload_items!();

    fn fill_defaults(&mut self) {
        self.spec.replicas.get_or_insert(1);
        podspec::fill_defaults(&mut self.spec.template.spec);
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
    }

    fn intent_changed(&self, old: &Self) -> bool {
        self.spec != old.spec
    }

    fn is_met(&self) -> Option<bool> {
        let (wanted, status) = (self.spec.replicas.unwrap_or(1), &self.status);
        let observed = status.observed_generation >= self.metadata.generation;
        Some(observed && [status.replicas, status.ready_replicas] == [wanted; 2])
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let spec = FieldPath::root("spec");
        errors.non_negative(
            &spec.field("replicas"),
            self.spec.replicas.unwrap_or_default(),
        );
        errors.non_negative(&spec.field("minReadySeconds"), self.spec.min_ready_seconds);
        let selector = self.spec.selector.as_ref();
        template::validate(selector, &self.spec.template, errors);
    }

    fn validate_status_update(&self, _old: &Self, errors: &mut FieldErrors) {
        let (path, status) = (FieldPath::root("status"), &self.status);
        let (ready, available) = (status.ready_replicas, status.available_replicas);
        let counts = [
            ("fullyLabeledReplicas", status.fully_labeled_replicas),
            ("readyReplicas", ready),
            ("availableReplicas", available),
        ];
        template::validate_counts(status.replicas, &counts, &path, errors);
        errors.non_negative(
            &path.field("observedGeneration"),
            status.observed_generation,
        );
        let terminating = status.terminating_replicas.unwrap_or_default();
        errors.non_negative(&path.field("terminatingReplicas"), terminating);
        template::validate_available(available, ready, &path, errors);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let (spec, status) = (&self.spec, &self.status);
        Some(match column {
            "Desired" => spec.replicas.unwrap_or_default().into(),
            "Current" => status.replicas.into(),
            "Ready" => status.ready_replicas.into(),
            _ => return template::cell(column, &spec.template, spec.selector.as_ref()),
        })
    }

    fn waits(&self, _records: &Records<'_>) -> Vec<Wait> {
        let (spec, status) = (&self.spec, &self.status);
        let rollout = Rollout {
            observed_generation: status.observed_generation,
            reported: failures(&status.conditions),
            wanted: spec.replicas.unwrap_or_default(),
            ready: status.ready_replicas,
            ..Rollout::default()
        };
        rollout.waits(self.metadata.generation)
    }
}
