//! Pod: it is created `Pending`, and most of its spec is immutable.

mod binding;
mod cells;
mod devices;
mod ephemeral;
mod resize;
mod status;
pub mod tolerations;
mod update;
mod waits;

pub use setpoint_model::pod_references as references;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::{condition, pod, qos_class};
use setpoint_proto::core::{Pod, PodCondition};
use setpoint_proto::setpoint::Wait;

use super::{Paths, Role, StoredKind};
use crate::Subresource;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec;
use crate::validation::warnings::{Warnings, warn_of_hostname};
use crate::waits::Records;

/// The default grace period of a deletion, in seconds.
const DEFAULT_GRACE_PERIOD: i64 = 30;

impl StoredKind for Pod {
    const WAITS_HAVE_NEXT_RECONCILE: bool = true;
    const ROLE: Role = Role::Pod;
    const COUNTS_GENERATIONS: bool = true;
    const STATUS_RESETS: Paths = &[
        &["spec"],
        &["metadata", "deletionTimestamp"],
        &["metadata", "ownerReferences"],
    ];
    const RETURNS_DELETED: bool = true;

    fn fill_defaults(&mut self) {
        podspec::fill_defaults(&mut self.spec);
        podspec::fill_pod_defaults(&mut self.spec);
    }

    fn prepare_create(&mut self) {
        self.status = Default::default();
        self.status.phase = "Pending".into();
        self.status.qos_class = qos_class(&self.spec).into();
        if !self.spec.scheduling_gates.is_empty() {
            self.status.conditions.push(gated());
        }
    }

    /// Also keeps or adds what admission has set, which the manifest of a replacement lacks: the priority, the
    /// preemption policy, and the default tolerations.
    fn prepare_update(&mut self, old: &Self) {
        self.status = old.status.clone();
        let (spec, was) = (&mut self.spec, &old.spec);
        spec.priority = spec.priority.or(was.priority);
        if spec.preemption_policy.is_none() {
            spec.preemption_policy.clone_from(&was.preemption_policy);
        }
        let mut given = old.spec.tolerations.clone();
        tolerations::add_defaults(&mut given);
        if given.len() == old.spec.tolerations.len() {
            tolerations::add_defaults(&mut self.spec.tolerations);
        }
    }

    /// Also keeps the owners, which old node agents decode incorrectly, and fields of the status that they leave out.
    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
        let owners = &old.metadata.owner_references;
        self.metadata.owner_references.clone_from(owners);
        status::keep_unset(&mut self.status, &old.status);
    }

    fn prepare_part_update(&mut self, old: &Self, part: Subresource) {
        match part {
            Subresource::Resize => resize::prepare(self, old),
            _ => ephemeral::prepare(self, old),
        }
    }

    fn validate_part_update(&self, old: &Self, part: Subresource, errors: &mut FieldErrors) {
        podspec::validate_pod(self, errors);
        match part {
            Subresource::Resize => resize::validate(self, old, errors),
            _ => ephemeral::validate(self, old, errors),
        }
    }

    fn validate_status_update(&self, old: &Self, errors: &mut FieldErrors) {
        update::validate_annotations(self, old, errors);
        let path = FieldPath::root("metadata");
        let path = path.field("annotations");
        podspec::validate_annotations(&self.metadata.annotations, &self.spec, &path, errors);
        status::validate_update(self, old, errors);
    }

    fn intent_changed(&self, old: &Self) -> bool {
        self.spec != old.spec
    }

    /// A node agent that does not set `observedGeneration` has observed the first generation.
    fn is_met(&self) -> Option<bool> {
        let observed = self.status.observed_generation.max(1) >= self.metadata.generation;
        Some(observed && condition::is_true(&self.status.conditions, "Ready"))
    }

    fn validate(&self, errors: &mut FieldErrors) {
        podspec::validate_pod(self, errors);
    }

    fn validate_create(&self, errors: &mut FieldErrors) {
        let path = FieldPath::root("spec");
        if !self.spec.ephemeral_containers.is_empty() {
            let at = path.field("ephemeralContainers");
            errors.forbidden(&at, "cannot be set on create");
        }
        if !self.spec.node_name.is_empty() && !self.spec.scheduling_gates.is_empty() {
            let detail = "cannot be set until all schedulingGates have been cleared";
            errors.forbidden(&path.field("nodeName"), detail);
        }
        let annotations = &self.metadata.annotations;
        podspec::validate_profiles(annotations, &self.spec, &path, errors);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        update::validate(self, old, errors);
    }

    /// Does not warn of updates, as upstream: most are made by programs.
    fn warn(&self, old: Option<&Self>, warnings: &mut Warnings) {
        if old.is_none() {
            warn_of_hostname(&self.metadata.name, warnings);
            podspec::warn_of_pod(self, warnings);
        }
    }

    fn warn_of_status(&self, warnings: &mut Warnings) {
        status::warn(&self.status, warnings);
    }

    fn cell(&self, column: &str, now: Timestamp) -> Option<Value> {
        cells::cell(self, column, now)
    }

    fn completion(&self) -> Option<(&str, &'static str)> {
        let message = match self.status.phase.as_str() {
            "Succeeded" => "The pod has completed successfully.",
            "Failed" => "The pod failed.",
            _ => return None,
        };
        Some((&self.status.phase, message))
    }

    fn bind(&mut self, node: &str, now: Timestamp) -> Result<(), String> {
        binding::assign(self, node, now)
    }

    fn begin_deletion(&mut self, requested: Option<i64>) -> i64 {
        grace_period(self, requested)
    }

    fn waits(&self, records: &Records<'_>) -> Vec<Wait> {
        waits::waits(self, records)
    }
}

/// Returns the condition of a Pod with scheduling gates.
fn gated() -> PodCondition {
    PodCondition {
        r#type: "PodScheduled".into(),
        status: condition::FALSE.into(),
        reason: "SchedulingGated".into(),
        message: "Scheduling is blocked due to non-empty scheduling gates".into(),
        last_transition_time: Timestamp::now().into(),
        ..Default::default()
    }
}

/// Returns the grace period of a deletion in seconds: 0 if no container can be running.
fn grace_period(pod: &Pod, requested: Option<i64>) -> i64 {
    if pod.spec.node_name.is_empty() || pod::is_terminal(pod) {
        return 0;
    }
    let grace = requested
        .or(pod.spec.termination_grace_period_seconds)
        .unwrap_or(DEFAULT_GRACE_PERIOD);
    // A negative grace period is an old form of "as soon as possible".
    if grace < 0 { 1 } else { grace }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::Resource as _;
    use setpoint_proto::core::{Container, PodSchedulingGate};

    use super::*;

    fn pod() -> Pod {
        let mut pod = Pod::default();
        pod.meta_mut().name = "web".into();
        pod.spec.node_name = "node-1".into();
        pod.spec.containers = vec![Container {
            name: "web".into(),
            image: "nginx:1.25".into(),
            ..Default::default()
        }];
        pod.fill_defaults();
        pod
    }

    fn errors_of(change: impl FnOnce(&mut Pod)) -> String {
        let old = pod();
        let mut new = old.clone();
        change(&mut new);
        let mut errors = FieldErrors::default();
        new.validate_update(&old, &mut errors);
        errors.to_string()
    }

    const NONE: &str = "[]";

    #[test]
    fn an_image_may_be_changed() {
        assert_eq!(
            errors_of(|pod| pod.spec.containers[0].image = "nginx:1.26".into()),
            NONE
        );
    }

    /// Also checks T5: the message names the fields.
    #[test]
    fn most_other_fields_are_immutable() {
        let command = errors_of(|pod| pod.spec.containers[0].command = vec!["sh".into()]);
        assert!(command.starts_with("spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"));
        assert!(command.ends_with("\nspec.containers[web].command: <unset> -> [\"sh\"]"));
        let gate = PodSchedulingGate {
            name: "later".into(),
        };
        assert!(errors_of(|pod| pod.spec.scheduling_gates.push(gate)).contains("Forbidden"));
        assert!(errors_of(|pod| pod.spec.node_name = "node-2".into()).contains("Forbidden"));
        let containers = errors_of(|pod| pod.spec.containers.clear());
        assert_eq!(
            containers,
            "spec.containers: Forbidden: pod updates may not add or remove containers"
        );
    }

    #[test]
    fn only_a_bound_pod_that_has_not_terminated_has_a_grace_period() {
        let mut pod = pod();
        assert_eq!(grace_period(&pod, None), 30);
        assert_eq!(grace_period(&pod, Some(3)), 3);
        assert_eq!(grace_period(&pod, Some(-1)), 1);
        pod.status.phase = "Succeeded".into();
        assert_eq!(grace_period(&pod, None), 0);
        pod.status.phase = "Running".into();
        pod.spec.node_name.clear();
        assert_eq!(grace_period(&pod, Some(3)), 0);
    }

    #[test]
    fn the_status_of_a_new_pod_is_set_by_the_gateway() {
        let mut pod = pod();
        pod.status.phase = "Running".into();
        pod.prepare_create();
        assert_eq!(
            (pod.status.phase.as_str(), pod.status.qos_class.as_str()),
            ("Pending", "BestEffort")
        );
    }
}
