//! Warnings of deprecated labels of nodes, in what selects nodes.

use setpoint_model::names;
use setpoint_proto::core::{NodeSelectorRequirement, NodeSelectorTerm};
use setpoint_proto::meta::LabelSelector;

use super::Warnings;
use crate::validation::field_path::FieldPath;

/// The labels, with what to do instead.
const DEPRECATED: [(&str, &str); 8] = [
    (
        "beta.kubernetes.io/arch",
        r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#,
    ),
    (
        "beta.kubernetes.io/os",
        r#"deprecated since v1.14; use "kubernetes.io/os" instead"#,
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#,
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#,
    ),
    (
        "beta.kubernetes.io/instance-type",
        r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#,
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    (
        "node-role.kubernetes.io/master",
        r#"use "node-role.kubernetes.io/control-plane" instead"#,
    ),
];

/// Returns what to do instead of using the label; `None` if it is not deprecated.
pub fn message(label: &str) -> Option<&'static str> {
    let found = DEPRECATED
        .iter()
        .find(|(deprecated, _)| *deprecated == label);
    found.map(|(_, message)| *message)
}

/// Warns of the terms of a selector of nodes.
pub fn warn_of_node_selector_terms(
    terms: &[NodeSelectorTerm],
    path: &FieldPath<'_>,
    warnings: &mut Warnings,
) {
    for (index, term) in terms.iter().enumerate() {
        warn_of_expressions(&term.match_expressions, false, &path.index(index), warnings);
    }
}

/// Warns of the expressions of a term; `values`: also of values that no label can have, which is an error of terms that
/// must match, but not of those that are preferred.
pub fn warn_of_expressions(
    expressions: &[NodeSelectorRequirement],
    values: bool,
    path: &FieldPath<'_>,
    warnings: &mut Warnings,
) {
    let path = path.field("matchExpressions");
    for (index, expression) in expressions.iter().enumerate() {
        let path = path.index(index);
        warn_of_key(&expression.key, &path, warnings);
        let at = path.field("values");
        for (index, value) in expression.values.iter().enumerate().filter(|_| values) {
            for problem in names::validate_label_value(value) {
                let text = format!("{value} is invalid, {problem}");
                warnings.about(&at.index(index), text);
            }
        }
    }
}

/// Warns of a label selector of nodes.
pub fn warn_of_node_selector(
    selector: &LabelSelector,
    path: &FieldPath<'_>,
    warnings: &mut Warnings,
) {
    let expressions = path.field("matchExpressions");
    for (index, expression) in selector.match_expressions.iter().enumerate() {
        warn_of_key(&expression.key, &expressions.index(index), warnings);
    }
    let labels = path.field("matchLabels");
    for label in selector.match_labels.keys() {
        if let Some(message) = message(label) {
            warnings.about(&labels.name(label), message);
        }
    }
}

fn warn_of_key(key: &str, path: &FieldPath<'_>, warnings: &mut Warnings) {
    if let Some(message) = message(key) {
        warnings.about(&path.field("key"), format!("{key} is {message}"));
    }
}
