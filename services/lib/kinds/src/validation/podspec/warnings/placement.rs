//! Warnings about what selects nodes and other Pods.

use setpoint_proto::core::{PodAffinityTerm, PodSpec, WeightedPodAffinityTerm};

use crate::validation::field_path::FieldPath;
use crate::validation::podspec::affinity::{PREFERRED, REQUIRED};
use crate::validation::warnings::{
    Warnings, node_label_message, warn_of_expressions, warn_of_node_selector_terms,
};

const NULL_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// Warns of deprecated labels of nodes, and of spread constraints that count no Pods.
pub fn warn_of_nodes(spec: &PodSpec, path: &FieldPath<'_>, warnings: &mut Warnings) {
    let selector = path.field("nodeSelector");
    for label in spec.node_selector.keys() {
        if let Some(message) = node_label_message(label) {
            warnings.about(&selector.key(label), message);
        }
    }
    warn_of_affinity(spec, path, warnings);
    let constraints = path.field("topologySpreadConstraints");
    for (index, constraint) in spec.topology_spread_constraints.iter().enumerate() {
        let (path, key) = (constraints.index(index), &constraint.topology_key);
        if let Some(message) = node_label_message(key) {
            warnings.about(&path.field("topologyKey"), format!("{key} is {message}"));
        }
        if constraint.label_selector.is_none() {
            warnings.about(&path.field("labelSelector"), NULL_SELECTOR);
        }
    }
}

fn warn_of_affinity(spec: &PodSpec, path: &FieldPath<'_>, warnings: &mut Warnings) {
    let affinity = spec.affinity.as_ref();
    let Some(nodes) = affinity.and_then(|affinity| affinity.node_affinity.as_ref()) else {
        return;
    };
    let path = path.field("affinity");
    let path = path.field("nodeAffinity");
    if let Some(required) = &nodes.required_during_scheduling_ignored_during_execution {
        let at = path.field(REQUIRED);
        let terms = &required.node_selector_terms;
        warn_of_node_selector_terms(terms, &at.field("nodeSelectorTerms"), warnings);
    }
    let path = path.field(PREFERRED);
    let preferred = &nodes.preferred_during_scheduling_ignored_during_execution;
    for (index, term) in preferred.iter().enumerate() {
        let at = path.index(index);
        let expressions = &term.preference.match_expressions;
        warn_of_expressions(expressions, true, &at.field("preference"), warnings);
    }
}

/// Warns of affinity to Pods that selects none.
pub fn warn_of_pods(spec: &PodSpec, path: &FieldPath<'_>, warnings: &mut Warnings) {
    let Some(affinity) = &spec.affinity else {
        return;
    };
    let path = path.field("affinity");
    if let Some(pods) = &affinity.pod_affinity {
        let required = &pods.required_during_scheduling_ignored_during_execution;
        let preferred = &pods.preferred_during_scheduling_ignored_during_execution;
        warn_of_terms(required, preferred, &path.field("podAffinity"), warnings);
    }
    if let Some(pods) = &affinity.pod_anti_affinity {
        let required = &pods.required_during_scheduling_ignored_during_execution;
        let preferred = &pods.preferred_during_scheduling_ignored_during_execution;
        warn_of_terms(
            required,
            preferred,
            &path.field("podAntiAffinity"),
            warnings,
        );
    }
}

fn warn_of_terms(
    required: &[PodAffinityTerm],
    preferred: &[WeightedPodAffinityTerm],
    path: &FieldPath<'_>,
    warnings: &mut Warnings,
) {
    let at = path.field(REQUIRED);
    for (index, term) in required.iter().enumerate() {
        if term.label_selector.is_none() {
            warnings.about(&at.index(index).field("labelSelector"), NULL_SELECTOR);
        }
    }
    let at = path.field(PREFERRED);
    for (index, term) in preferred.iter().enumerate() {
        if term.pod_affinity_term.label_selector.is_none() {
            let at = at.index(index);
            let at = at.field("podAffinityTerm");
            warnings.about(&at.field("labelSelector"), NULL_SELECTOR);
        }
    }
}
