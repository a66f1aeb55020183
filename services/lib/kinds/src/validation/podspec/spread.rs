//! Validation of topology spread constraints.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_model::names;
use setpoint_proto::core::TopologySpreadConstraint;
use setpoint_proto::meta::LabelSelector;

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::label_selector;

const UNSATISFIABLE: &[&str] = &["DoNotSchedule", "ScheduleAnyway"];
const POLICIES: &[&str] = &["Honor", "Ignore"];

/// Validates topology spread constraints.
pub fn validate(
    constraints: &[TopologySpreadConstraint],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    // As upstream, all duplicates except the last are reported.
    let last: BTreeMap<_, _> = (0..)
        .zip(constraints)
        .map(|(at, one)| (unique_key(one), at))
        .collect();
    for (index, constraint) in constraints.iter().enumerate() {
        let path = path.index(index);
        validate_constraint(constraint, &path, errors);
        if last.get(&unique_key(constraint)) != Some(&index) {
            let (key, when) = unique_key(constraint);
            let at = path.field("{topologyKey, whenUnsatisfiable}");
            errors.duplicate(&at, format!("{{{key}, {when}}}"));
        }
    }
}

fn unique_key(constraint: &TopologySpreadConstraint) -> (&str, &str) {
    (&constraint.topology_key, &constraint.when_unsatisfiable)
}

fn validate_constraint(
    constraint: &TopologySpreadConstraint,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    errors.positive(&path.field("maxSkew"), constraint.max_skew);
    if constraint.topology_key.is_empty() {
        errors.required(&path.field("topologyKey"), "can not be empty");
    }
    let when = constraint.when_unsatisfiable.as_str();
    errors.one_of(&path.field("whenUnsatisfiable"), when, UNSATISFIABLE);
    if let Some(domains) = constraint.min_domains {
        let at = path.field("minDomains");
        errors.positive(&at, domains);
        if when != "DoNotSchedule" {
            let detail =
                format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}");
            errors.invalid(&at, domains, detail);
        }
    }
    for (policy, field) in [
        (&constraint.node_affinity_policy, "nodeAffinityPolicy"),
        (&constraint.node_taints_policy, "nodeTaintsPolicy"),
    ] {
        errors.one_of(&path.field(field), policy.as_deref(), POLICIES);
    }
    let selector = constraint.label_selector.as_ref();
    validate_label_keys(&constraint.match_label_keys, &[], selector, path, errors);
    label_selector::validate(selector, &path.field("labelSelector"), errors);
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys` against the label selector.
pub fn validate_label_keys(
    matching: &[String],
    mismatching: &[String],
    selector: Option<&LabelSelector>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("matchLabelKeys");
    validate_keys(matching, selector, &at, errors);
    validate_keys(
        mismatching,
        selector,
        &path.field("mismatchLabelKeys"),
        errors,
    );
    let mut selected: BTreeSet<_> = selector
        .iter()
        .flat_map(|s| s.match_labels.keys())
        .collect();
    for expression in selector
        .iter()
        .flat_map(|selector| &selector.match_expressions)
    {
        let key = &expression.key;
        let matched = matching.iter().rposition(|matching| matching == key);
        if let Some(index) = matched.filter(|_| !selected.insert(key)) {
            let detail = "exists in both matchLabelKeys and labelSelector";
            errors.invalid(&path.index(index), key, detail);
        }
        selected.insert(key);
    }
    let mismatching: BTreeSet<_> = mismatching.iter().collect();
    for (index, key) in matching.iter().enumerate() {
        if mismatching.contains(key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.invalid(&at.index(index), key, detail);
        }
    }
}

fn validate_keys(
    keys: &[String],
    selector: Option<&LabelSelector>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if !keys.is_empty() && selector.is_none() {
        errors.forbidden(path, "must not be specified when labelSelector is not set");
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        errors.check(&path.index(index), key, names::validate_label_key);
    }
}
