//! Validation of node and Pod affinity.

use setpoint_model::names;
use setpoint_proto::core::{
    Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    PodAffinityTerm, WeightedPodAffinityTerm,
};

use super::spread;
use crate::registry::validation::field_errors::Problems;
use crate::registry::validation::field_path::Path;
use crate::registry::validation::label_selector;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const WEIGHTS: std::ops::RangeInclusive<i32> = 1..=100;

/// Finds what is wrong with affinity of any kind.
pub fn validate(affinity: &Affinity, path: &Path<'_>, problems: &mut Problems) {
    if let Some(nodes) = &affinity.node_affinity {
        validate_nodes(nodes, &path.field("nodeAffinity"), problems);
    }
    if let Some(pods) = &affinity.pod_affinity {
        let path = path.field("podAffinity");
        let required = &pods.required_during_scheduling_ignored_during_execution;
        validate_pods(required, &path.field(REQUIRED), problems);
        let preferred = &pods.preferred_during_scheduling_ignored_during_execution;
        validate_weighted(preferred, &path.field(PREFERRED), problems);
    }
    if let Some(pods) = &affinity.pod_anti_affinity {
        let path = path.field("podAntiAffinity");
        let required = &pods.required_during_scheduling_ignored_during_execution;
        validate_pods(required, &path.field(REQUIRED), problems);
        let preferred = &pods.preferred_during_scheduling_ignored_during_execution;
        validate_weighted(preferred, &path.field(PREFERRED), problems);
    }
}

fn validate_nodes(affinity: &NodeAffinity, path: &Path<'_>, problems: &mut Problems) {
    if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
        validate_selector(required, &path.field(REQUIRED), problems);
    }
    let preferred = path.field(PREFERRED);
    let list = &affinity.preferred_during_scheduling_ignored_during_execution;
    for (index, preference) in list.iter().enumerate() {
        let path = preferred.index(index);
        validate_weight(preference.weight, &path, problems);
        // That the values are labels' is asked of what is required only.
        validate_term(
            &preference.preference,
            false,
            &path.field("preference"),
            problems,
        );
    }
}

fn validate_selector(selector: &NodeSelector, path: &Path<'_>, problems: &mut Problems) {
    let terms = path.field("nodeSelectorTerms");
    if selector.node_selector_terms.is_empty() {
        problems.required(&terms, "must have at least one node selector term");
    }
    for (index, term) in selector.node_selector_terms.iter().enumerate() {
        validate_term(term, true, &terms.index(index), problems);
    }
}

fn validate_term(term: &NodeSelectorTerm, strict: bool, path: &Path<'_>, problems: &mut Problems) {
    let expressions = path.field("matchExpressions");
    for (index, requirement) in term.match_expressions.iter().enumerate() {
        let path = expressions.index(index);
        validate_operator(requirement, &path, problems);
        let key = requirement.key.as_str();
        problems.all_invalid(&path.field("key"), key, names::validate_label_key(key));
        if strict {
            label_selector::validate_values(&requirement.values, &path.field("values"), problems);
        }
    }
    let fields = path.field("matchFields");
    for (index, requirement) in term.match_fields.iter().enumerate() {
        validate_field(requirement, &fields.index(index), problems);
    }
}

fn validate_operator(
    requirement: &NodeSelectorRequirement,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let values = path.field("values");
    match (requirement.operator.as_str(), requirement.values.len()) {
        ("In" | "NotIn", 0) => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            problems.required(&values, detail);
        }
        ("Exists" | "DoesNotExist", 1..) => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            problems.forbidden(&values, detail);
        }
        ("Gt" | "Lt", 0 | 2..) => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            problems.required(&values, detail);
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt", _) => {}
        (other, _) => problems.invalid(&path.field("operator"), other, NO_OPERATOR),
    }
}

const NO_OPERATOR: &str = "not a valid selector operator";

/// Of a node's fields only its name can be asked for.
fn validate_field(requirement: &NodeSelectorRequirement, path: &Path<'_>, problems: &mut Problems) {
    let values = path.field("values");
    match (requirement.operator.as_str(), requirement.values.len()) {
        ("In" | "NotIn", 1) => {}
        ("In" | "NotIn", _) => {
            let detail =
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            problems.required(&values, detail);
        }
        (other, _) => problems.invalid(&path.field("operator"), other, NO_OPERATOR),
    }
    if requirement.key != "metadata.name" {
        let detail = "not a valid field selector key";
        problems.invalid(&path.field("key"), &requirement.key, detail);
        return;
    }
    for (index, name) in requirement.values.iter().enumerate() {
        let wrong = names::validate_dns_subdomain(name);
        problems.all_invalid(&values.index(index), name, wrong);
    }
}

fn validate_pods(terms: &[PodAffinityTerm], path: &Path<'_>, problems: &mut Problems) {
    for (index, term) in terms.iter().enumerate() {
        validate_pod_term(term, &path.index(index), problems);
    }
}

fn validate_weighted(terms: &[WeightedPodAffinityTerm], path: &Path<'_>, problems: &mut Problems) {
    for (index, weighted) in terms.iter().enumerate() {
        let path = path.index(index);
        validate_weight(weighted.weight, &path, problems);
        let at = path.field("podAffinityTerm");
        validate_pod_term(&weighted.pod_affinity_term, &at, problems);
    }
}

fn validate_weight(weight: i32, path: &Path<'_>, problems: &mut Problems) {
    if !WEIGHTS.contains(&weight) {
        problems.invalid(&path.field("weight"), weight, "must be in the range 1-100");
    }
}

fn validate_pod_term(term: &PodAffinityTerm, path: &Path<'_>, problems: &mut Problems) {
    let selector = term.label_selector.as_ref();
    label_selector::validate(selector, &path.field("labelSelector"), problems);
    let namespaces = term.namespace_selector.as_ref();
    label_selector::validate(namespaces, &path.field("namespaceSelector"), problems);
    for name in &term.namespaces {
        let wrong = names::validate_dns_label(name);
        problems.all_invalid(&path.field("namespace"), name, wrong);
    }
    let keys = (&*term.match_label_keys, &*term.mismatch_label_keys);
    spread::validate_label_keys(keys.0, keys.1, selector, path, problems);
    let (at, key) = (path.field("topologyKey"), term.topology_key.as_str());
    if key.is_empty() {
        problems.required(&at, "can not be empty");
    }
    problems.all_invalid(&at, key, names::validate_label_key(key));
}
