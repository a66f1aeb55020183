//! ReplicationController: a set of labels as the selector, by default those of the template.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::selector::Selector;
use setpoint_proto::core::{PodTemplateSpec, ReplicationController};
use setpoint_proto::setpoint::Wait;

use super::template;
use super::{Replicas, Role, StoredKind, status};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec;
use crate::validation::warnings::{Warnings, warn_of_pod_names};
use crate::waits::{Records, Rollout, failures};

impl StoredKind for ReplicationController {
    const ROLE: Role = Role::Workload;
    const ORPHANS_BY_DEFAULT: bool = true;

    status::status_items!();

    fn fill_defaults(&mut self) {
        self.spec.replicas.get_or_insert(1);
        let Some(template) = &mut self.spec.template else {
            return;
        };
        let labels = &template.metadata.labels;
        if self.spec.selector.is_empty() {
            self.spec.selector.clone_from(labels);
        }
        if self.metadata.labels.is_empty() {
            self.metadata.labels.clone_from(labels);
        }
        podspec::fill_defaults(&mut template.spec);
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let (path, spec) = (FieldPath::root("spec"), &self.spec);
        errors.non_negative(&path.field("minReadySeconds"), spec.min_ready_seconds);
        if spec.selector.is_empty() {
            errors.required(&path.field("selector"), "");
        }
        errors.non_negative(&path.field("replicas"), spec.replicas.unwrap_or_default());
        let path = path.field("template");
        match &spec.template {
            None => errors.required(&path, ""),
            Some(template) => {
                let selector = Selector::from_labels(&spec.selector);
                template::validate_labels(Some(&selector), template, &path, errors);
                template::validate_running(template, "ReplicationController", &path, errors);
            }
        }
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
        template::validate_available(available, ready, &path, errors);
    }

    fn scale(&self) -> Option<Replicas> {
        Some(Replicas {
            desired: self.spec.replicas.unwrap_or_default(),
            unknown: None,
            observed: self.status.replicas,
            selector: Some(Selector::from_labels(&self.spec.selector)),
        })
    }

    template::scale_items!(set);

    /// Warns of the new template; upstream warns of the old one when both differ.
    fn warn(&self, old: Option<&Self>, warnings: &mut Warnings) {
        if old.is_none() {
            warn_of_pod_names(&self.metadata.name, warnings);
        }
        if let Some(template) = &self.spec.template {
            template::warn_of_change(self, old, template, warnings);
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let (spec, status) = (&self.spec, &self.status);
        Some(match column {
            "Desired" => spec.replicas.unwrap_or_default().into(),
            "Current" => status.replicas.into(),
            "Ready" => status.ready_replicas.into(),
            "Selector" => template::labels(&spec.selector),
            _ => {
                let none = PodTemplateSpec::default();
                return template::cell(column, spec.template.as_ref().unwrap_or(&none), None);
            }
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
