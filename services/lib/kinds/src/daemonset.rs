//! DaemonSet: an update strategy, and an annotation that counts the changes of the template.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::selector::Selector;
use setpoint_proto::apps::{DaemonSet, DaemonSetUpdateStrategy, RollingUpdateDaemonSet};
use setpoint_proto::meta::IntOrString;
use setpoint_proto::setpoint::Wait;

use super::template;
use super::{Role, StoredKind};
use crate::validation::amount::{self, Amount};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::Warnings;
use crate::validation::{label_selector, podspec, set_default};
use crate::waits::{Records, Rollout, wait};

/// The annotation with the number of the template, which old clients read.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

impl StoredKind for DaemonSet {
    const COUNTS_GENERATIONS: bool = true;
    const ROLE: Role = Role::Workload;

    fn fill_defaults(&mut self) {
        self.spec.revision_history_limit.get_or_insert(10);
        fill_strategy(&mut self.spec.update_strategy);
        podspec::fill_defaults(&mut self.spec.template.spec);
    }

    fn prepare_create(&mut self) {
        self.status = Default::default();
        let generation = template_generation(&self.metadata.annotations).max(1);
        set_template_generation(&mut self.metadata.annotations, generation);
    }

    fn prepare_update(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
        self.fill_defaults();
        let changes = i64::from(self.spec.template != old.spec.template);
        let generation = template_generation(&old.metadata.annotations).saturating_add(changes);
        set_template_generation(&mut self.metadata.annotations, generation);
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
        let generation = template_generation(&old.metadata.annotations);
        set_template_generation(&mut self.metadata.annotations, generation);
    }

    fn intent_changed(&self, old: &Self) -> bool {
        self.spec != old.spec
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let (path, spec) = (FieldPath::root("spec"), &self.spec);
        let (selector, at) = (spec.selector.as_ref(), path.field("selector"));
        let before = errors.count();
        label_selector::validate(selector, &at, errors);
        let template = path.field("template");
        if errors.count() == before
            && let Ok(parsed) = selector.map(Selector::from_label_selector).transpose()
        {
            template::validate_labels(parsed.as_ref(), &spec.template, &template, errors);
        }
        if selector.is_some_and(label_selector::is_empty) {
            errors.invalid(&at, selector, "empty selector is invalid for daemonset");
        }
        template::validate_running(&spec.template, "DaemonSet", &template, errors);
        errors.non_negative(&path.field("minReadySeconds"), spec.min_ready_seconds);
        validate_strategy(&spec.update_strategy, &path.field("updateStrategy"), errors);
        let history = spec.revision_history_limit.unwrap_or_default();
        errors.non_negative(&path.field("revisionHistoryLimit"), history);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        let path = FieldPath::root("spec");
        let (new, old) = (&self.spec.selector, &old.spec.selector);
        errors.immutable(&path.field("selector"), new, old);
    }

    fn validate_status_update(&self, old: &Self, errors: &mut FieldErrors) {
        let (path, status) = (FieldPath::root("status"), &self.status);
        for (field, count) in [
            ("currentNumberScheduled", status.current_number_scheduled),
            ("numberMisscheduled", status.number_misscheduled),
            ("desiredNumberScheduled", status.desired_number_scheduled),
            ("numberReady", status.number_ready),
            ("updatedNumberScheduled", status.updated_number_scheduled),
            ("numberAvailable", status.number_available),
            ("numberUnavailable", status.number_unavailable),
        ] {
            errors.non_negative(&path.field(field), count);
        }
        errors.non_negative(
            &path.field("observedGeneration"),
            status.observed_generation,
        );
        let collisions = old.status.collision_count;
        template::validate_collisions(status.collision_count, collisions, &path, errors);
    }

    fn warn(&self, old: Option<&Self>, warnings: &mut Warnings) {
        let template = &self.spec.template;
        if old.is_none_or(|old| old.spec.template != *template) {
            let path = FieldPath::root("spec");
            podspec::warn_of_template(template, &path.field("template"), warnings);
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let (spec, status) = (&self.spec, &self.status);
        Some(match column {
            "Up-to-date" => status.updated_number_scheduled.into(),
            "Available" => status.number_available.into(),
            "Node Selector" => template::labels(&spec.template.spec.node_selector),
            _ => return template::cell(column, &spec.template, spec.selector.as_ref()),
        })
    }

    fn waits(&self, _records: &Records<'_>) -> Vec<Wait> {
        let status = &self.status;
        let (updated, wanted) = (
            status.updated_number_scheduled,
            status.desired_number_scheduled,
        );
        let outdated = outdated(updated, wanted, &self.spec.update_strategy.r#type);
        let rollout = Rollout {
            observed_generation: status.observed_generation,
            reported: misplaced(status.number_misscheduled)
                .into_iter()
                .chain(outdated)
                .collect(),
            wanted,
            ready: status.number_ready,
            ..Rollout::default()
        };
        rollout.waits(self.metadata.generation)
    }
}

fn template_generation(annotations: &BTreeMap<String, String>) -> i64 {
    let text = annotations.get(TEMPLATE_GENERATION);
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn set_template_generation(annotations: &mut BTreeMap<String, String>, generation: i64) {
    annotations.insert(TEMPLATE_GENERATION.into(), generation.to_string());
}

fn fill_strategy(strategy: &mut DaemonSetUpdateStrategy) {
    set_default(&mut strategy.r#type, "RollingUpdate");
    if strategy.r#type == "RollingUpdate" {
        let rolling = strategy.rolling_update.get_or_insert_default();
        let unavailable = &mut rolling.max_unavailable;
        unavailable.get_or_insert_with(|| IntOrString::int(1));
        rolling.max_surge.get_or_insert_with(|| IntOrString::int(0));
    }
}

fn validate_strategy(
    strategy: &DaemonSetUpdateStrategy,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("rollingUpdate");
    match (strategy.r#type.as_str(), &strategy.rolling_update) {
        ("OnDelete", _) => {}
        ("RollingUpdate", None) => errors.required(&at, ""),
        ("RollingUpdate", Some(rolling)) => validate_rolling(rolling, &at, errors),
        // Upstream names the whole strategy, not its type.
        (other, _) => errors.unsupported(path, other, &["OnDelete", "RollingUpdate"]),
    }
}

fn validate_rolling(
    rolling: &RollingUpdateDaemonSet,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let none = IntOrString::default();
    let unavailable = rolling.max_unavailable.as_ref().unwrap_or(&none);
    let surge = rolling.max_surge.as_ref().unwrap_or(&none);
    let (down_at, up_at) = (path.field("maxUnavailable"), path.field("maxSurge"));
    let down = Amount::validate(unavailable, &down_at, errors);
    let up = Amount::validate(surge, &up_at, errors);
    amount::validate_percentage(unavailable, &down_at, errors);
    amount::validate_percentage(surge, &up_at, errors);
    match (down.is_zero(), up.is_zero()) {
        (false, false) => {
            let detail = "may not be set when maxUnavailable is non-zero";
            errors.invalid(&up_at, surge, detail);
        }
        (true, true) => errors.required(&down_at, "cannot be 0 when maxSurge is 0"),
        _ => {}
    }
}

/// Returns that not all Pods of a DaemonSet are of the current template.
fn outdated(updated: i32, wanted: i32, strategy: &str) -> Option<Wait> {
    let next = match strategy {
        "OnDelete" => "OnDelete: one is updated when it is deleted",
        _ => "they are updated node by node",
    };
    let message = || format!("{updated} of {wanted} Pods are of the current template; {next}");
    (updated < wanted).then(|| wait("NotUpdated", message()))
}

/// Returns that a DaemonSet has Pods on nodes that should not run it.
fn misplaced(nodes: i32) -> Option<Wait> {
    let message = || format!("{nodes} nodes have a Pod and should not run one");
    (nodes > 0).then(|| wait("Misscheduled", message()))
}
