//! Validation of node and Pod affinity.

use setpoint_model::names;
use setpoint_proto::core::{
    Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    PodAffinityTerm, WeightedPodAffinityTerm,
};

use super::spread;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::label_selector;

pub const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
pub const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const WEIGHTS: std::ops::RangeInclusive<i32> = 1..=100;

/// Validates node affinity, Pod affinity and Pod anti-affinity.
pub fn validate(affinity: &Affinity, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(nodes) = &affinity.node_affinity {
        validate_nodes(nodes, &path.field("nodeAffinity"), errors);
    }
    if let Some(pods) = &affinity.pod_affinity {
        let path = path.field("podAffinity");
        let required = &pods.required_during_scheduling_ignored_during_execution;
        validate_pods(required, &path.field(REQUIRED), errors);
        let preferred = &pods.preferred_during_scheduling_ignored_during_execution;
        validate_weighted(preferred, &path.field(PREFERRED), errors);
    }
    if let Some(pods) = &affinity.pod_anti_affinity {
        let path = path.field("podAntiAffinity");
        let required = &pods.required_during_scheduling_ignored_during_execution;
        validate_pods(required, &path.field(REQUIRED), errors);
        let preferred = &pods.preferred_during_scheduling_ignored_during_execution;
        validate_weighted(preferred, &path.field(PREFERRED), errors);
    }
}

fn validate_nodes(affinity: &NodeAffinity, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
        validate_selector(required, &path.field(REQUIRED), errors);
    }
    let preferred = path.field(PREFERRED);
    let list = &affinity.preferred_during_scheduling_ignored_during_execution;
    for (index, preference) in list.iter().enumerate() {
        let path = preferred.index(index);
        validate_weight(preference.weight, &path, errors);
        // Upstream validates the values of required terms only.
        validate_term(
            &preference.preference,
            false,
            &path.field("preference"),
            errors,
        );
    }
}

/// Validates a selector of nodes.
pub fn validate_selector(selector: &NodeSelector, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let terms = path.field("nodeSelectorTerms");
    if selector.node_selector_terms.is_empty() {
        errors.required(&terms, "must have at least one node selector term");
    }
    for (index, term) in selector.node_selector_terms.iter().enumerate() {
        validate_term(term, true, &terms.index(index), errors);
    }
}

fn validate_term(
    term: &NodeSelectorTerm,
    strict: bool,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let expressions = path.field("matchExpressions");
    for (index, requirement) in term.match_expressions.iter().enumerate() {
        let path = expressions.index(index);
        validate_operator(requirement, &path, errors);
        let key = requirement.key.as_str();
        errors.check(&path.field("key"), key, names::validate_label_key);
        if strict {
            label_selector::validate_values(&requirement.values, &path.field("values"), errors);
        }
    }
    let fields = path.field("matchFields");
    for (index, requirement) in term.match_fields.iter().enumerate() {
        validate_field(requirement, &fields.index(index), errors);
    }
}

fn validate_operator(
    requirement: &NodeSelectorRequirement,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let values = path.field("values");
    match (requirement.operator.as_str(), requirement.values.len()) {
        ("In" | "NotIn", 0) => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.required(&values, detail);
        }
        ("Exists" | "DoesNotExist", 1..) => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.forbidden(&values, detail);
        }
        ("Gt" | "Lt", 0 | 2..) => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.required(&values, detail);
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt", _) => {}
        (other, _) => errors.invalid(&path.field("operator"), other, NO_OPERATOR),
    }
}

const NO_OPERATOR: &str = "not a valid selector operator";

/// Validates a requirement on a field of a node; the only field is its name.
fn validate_field(
    requirement: &NodeSelectorRequirement,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let values = path.field("values");
    match (requirement.operator.as_str(), requirement.values.len()) {
        ("In" | "NotIn", 1) => {}
        ("In" | "NotIn", _) => {
            let detail =
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.required(&values, detail);
        }
        (other, _) => errors.invalid(&path.field("operator"), other, NO_OPERATOR),
    }
    if requirement.key != "metadata.name" {
        let detail = "not a valid field selector key";
        errors.invalid(&path.field("key"), &requirement.key, detail);
        return;
    }
    for (index, name) in requirement.values.iter().enumerate() {
        errors.check(&values.index(index), name, names::validate_dns_subdomain);
    }
}

fn validate_pods(terms: &[PodAffinityTerm], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, term) in terms.iter().enumerate() {
        validate_pod_term(term, &path.index(index), errors);
    }
}

fn validate_weighted(
    terms: &[WeightedPodAffinityTerm],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (index, weighted) in terms.iter().enumerate() {
        let path = path.index(index);
        validate_weight(weighted.weight, &path, errors);
        let at = path.field("podAffinityTerm");
        validate_pod_term(&weighted.pod_affinity_term, &at, errors);
    }
}

fn validate_weight(weight: i32, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if !WEIGHTS.contains(&weight) {
        errors.invalid(&path.field("weight"), weight, "must be in the range 1-100");
    }
}

fn validate_pod_term(term: &PodAffinityTerm, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let selector = term.label_selector.as_ref();
    label_selector::validate(selector, &path.field("labelSelector"), errors);
    let namespaces = term.namespace_selector.as_ref();
    label_selector::validate(namespaces, &path.field("namespaceSelector"), errors);
    for name in &term.namespaces {
        errors.check(&path.field("namespace"), name, names::validate_dns_label);
    }
    let keys = (&*term.match_label_keys, &*term.mismatch_label_keys);
    spread::validate_label_keys(keys.0, keys.1, selector, path, errors);
    let (at, key) = (path.field("topologyKey"), term.topology_key.as_str());
    if key.is_empty() {
        errors.required(&at, "can not be empty");
    }
    errors.check(&at, key, names::validate_label_key);
}
