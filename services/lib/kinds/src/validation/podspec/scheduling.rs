//! Validation of tolerations, affinity, topology spread and scheduling gates.

use std::collections::BTreeSet;

use setpoint_model::names;
use setpoint_proto::core::{PodSchedulingGate, PodSpec, Toleration};

use super::{affinity, spread};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const OPERATORS: &[&str] = &["Equal", "Exists"];
/// The effects of taints.
pub const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Validates the fields of a Pod about scheduling.
pub fn validate(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let tolerations = path.field("tolerations");
    for (index, toleration) in spec.tolerations.iter().enumerate() {
        validate_toleration(toleration, &tolerations.index(index), errors);
    }
    if let Some(affinity) = &spec.affinity {
        affinity::validate(affinity, &path.field("affinity"), errors);
    }
    let at = path.field("topologySpreadConstraints");
    spread::validate(&spec.topology_spread_constraints, &at, errors);
    validate_gates(
        &spec.scheduling_gates,
        &path.field("schedulingGates"),
        errors,
    );
}

/// Validates a toleration.
pub fn validate_toleration(
    toleration: &Toleration,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let (key, value) = (toleration.key.as_str(), toleration.value.as_str());
    let (at, operator) = (path.field("operator"), toleration.operator.as_str());
    if !key.is_empty() {
        errors.check(&path.field("key"), key, names::validate_label_key);
    } else if operator != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.invalid(&at, operator, detail);
    }
    if toleration.toleration_seconds.is_some() && toleration.effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.invalid(&path.field("effect"), &toleration.effect, detail);
    }
    match operator {
        "" | "Equal" => {
            let wrong = names::validate_label_value(value);
            if !wrong.is_empty() {
                errors.invalid(&at, value, wrong.join(";"));
            }
        }
        "Exists" if !value.is_empty() => {
            errors.invalid(
                &at,
                value,
                "value must be empty when `operator` is 'Exists'",
            );
        }
        other => errors.one_of_or_empty(&at, other, OPERATORS),
    }
    errors.one_of_or_empty(&path.field("effect"), &toleration.effect, EFFECTS);
}

fn validate_gates(gates: &[PodSchedulingGate], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (index, gate) in gates.iter().enumerate() {
        let (path, name) = (path.index(index), gate.name.as_str());
        errors.check(&path, name, names::validate_qualified_name);
        if !seen.insert(name) {
            errors.duplicate(&path, name);
        }
    }
}
