//! What a Pod says about where it may run.

use std::collections::BTreeSet;

use setpoint_model::names;
use setpoint_proto::core::{NodeSelectorTerm, PodSpec, Toleration, TopologySpreadConstraint};

use crate::registry::path::Path;
use crate::registry::problems::Problems;

const TOLERATE: &[&str] = &["Equal", "Exists"];
const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
const UNSATISFIABLE: &[&str] = &["DoNotSchedule", "ScheduleAnyway"];
const OPERATORS: &[&str] = &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];

/// Finds what is wrong with tolerations, affinity, spreading and gates.
pub fn validate(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let tolerations = path.field("tolerations");
    for (index, toleration) in spec.tolerations.iter().enumerate() {
        validate_toleration(toleration, &tolerations.index(index), problems);
    }
    let constraints = path.field("topologySpreadConstraints");
    for (index, constraint) in spec.topology_spread_constraints.iter().enumerate() {
        validate_spread(constraint, &constraints.index(index), problems);
    }
    validate_node_affinity(spec, path, problems);
    let gates = path.field("schedulingGates");
    let mut seen = BTreeSet::new();
    for (index, gate) in spec.scheduling_gates.iter().enumerate() {
        let path = gates.index(index);
        problems.all_invalid(
            &path,
            &gate.name,
            names::validate_qualified_name(&gate.name),
        );
        if !seen.insert(gate.name.as_str()) {
            problems.duplicate(&path, &gate.name);
        }
    }
}

fn validate_toleration(toleration: &Toleration, path: &Path<'_>, problems: &mut Problems) {
    let key = toleration.key.as_str();
    let operator = toleration.operator.as_str();
    let at = path.field("operator");
    if !key.is_empty() {
        problems.all_invalid(&path.field("key"), key, names::validate_qualified_name(key));
    } else if operator != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        problems.invalid(&at, operator, detail);
    }
    problems.one_of(&at, operator, TOLERATE);
    if operator == "Exists" && !toleration.value.is_empty() {
        let detail = "value must be empty when `operator` is 'Exists'";
        problems.invalid(&at, &toleration.value, detail);
    }
    problems.one_of(&path.field("effect"), &toleration.effect, EFFECTS);
    if toleration.toleration_seconds.is_some() && toleration.effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        problems.invalid(&path.field("effect"), &toleration.effect, detail);
    }
}

fn validate_spread(
    constraint: &TopologySpreadConstraint,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if constraint.max_skew <= 0 {
        problems.invalid(
            &path.field("maxSkew"),
            constraint.max_skew,
            "must be greater than zero",
        );
    }
    if constraint.topology_key.is_empty() {
        problems.required(&path.field("topologyKey"), "can not be empty");
    }
    let when = constraint.when_unsatisfiable.as_str();
    if !UNSATISFIABLE.contains(&when) {
        problems.unsupported(&path.field("whenUnsatisfiable"), when, UNSATISFIABLE);
    }
}

fn validate_node_affinity(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let Some(affinity) = spec
        .affinity
        .as_ref()
        .and_then(|all| all.node_affinity.as_ref())
    else {
        return;
    };
    let path = path.field("affinity");
    let path = path.field("nodeAffinity");
    if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
        let path = path.field("requiredDuringSchedulingIgnoredDuringExecution");
        let terms = path.field("nodeSelectorTerms");
        if required.node_selector_terms.is_empty() {
            problems.required(&terms, "must have at least one node selector term");
        }
        for (index, term) in required.node_selector_terms.iter().enumerate() {
            validate_term(term, &terms.index(index), problems);
        }
    }
    let preferred = path.field("preferredDuringSchedulingIgnoredDuringExecution");
    let list = &affinity.preferred_during_scheduling_ignored_during_execution;
    for (index, preference) in list.iter().enumerate() {
        let path = preferred.index(index);
        if !(1..=100).contains(&preference.weight) {
            problems.invalid(
                &path.field("weight"),
                preference.weight,
                "must be in the range 1-100",
            );
        }
        validate_term(&preference.preference, &path.field("preference"), problems);
    }
}

fn validate_term(term: &NodeSelectorTerm, path: &Path<'_>, problems: &mut Problems) {
    let expressions = path.field("matchExpressions");
    for (index, requirement) in term.match_expressions.iter().enumerate() {
        let path = expressions.index(index);
        let key = requirement.key.as_str();
        problems.all_invalid(&path.field("key"), key, names::validate_label_key(key));
        let values = path.field("values");
        match (requirement.operator.as_str(), requirement.values.len()) {
            ("In" | "NotIn", 0) => {
                problems.required(
                    &values,
                    "must be specified when `operator` is 'In' or 'NotIn'",
                );
            }
            ("Exists" | "DoesNotExist", 1..) => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                problems.forbidden(&values, detail);
            }
            ("Gt" | "Lt", 0 | 2..) => {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                problems.required(&values, detail);
            }
            (operator, _) if !OPERATORS.contains(&operator) => {
                problems.invalid(
                    &path.field("operator"),
                    operator,
                    "not a valid selector operator",
                );
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{NodeSelectorRequirement, PodSchedulingGate};

    use super::*;

    fn complaints(change: impl FnOnce(&mut PodSpec)) -> String {
        let mut spec = PodSpec::default();
        change(&mut spec);
        let mut problems = Problems::default();
        validate(&spec, &Path::root("spec"), &mut problems);
        problems.to_string()
    }

    #[test]
    fn a_toleration_names_a_key_or_tolerates_all() {
        let toleration = |key: &str, operator: &str| Toleration {
            key: key.into(),
            operator: operator.into(),
            ..Default::default()
        };
        assert_eq!(
            complaints(|spec| spec.tolerations = vec![toleration("", "Exists")]),
            "[]"
        );
        assert_eq!(
            complaints(|spec| spec.tolerations = vec![toleration("a", "")]),
            "[]"
        );
        assert!(
            complaints(|spec| spec.tolerations = vec![toleration("", "")])
                .contains("operator must be Exists")
        );
        assert!(
            complaints(|spec| spec.tolerations = vec![toleration("a", "Like")])
                .contains("Unsupported value")
        );
    }

    #[test]
    fn an_affinity_term_has_the_values_that_its_operator_needs() {
        let complaint = complaints(|spec| {
            let affinity = spec.affinity.get_or_insert_default();
            let required = affinity
                .node_affinity
                .get_or_insert_default()
                .required_during_scheduling_ignored_during_execution
                .get_or_insert_default();
            required.node_selector_terms = vec![NodeSelectorTerm {
                match_expressions: vec![NodeSelectorRequirement {
                    key: "zone".into(),
                    operator: "In".into(),
                    values: vec![],
                }],
                ..Default::default()
            }];
        });
        assert!(
            complaint.ends_with("must be specified when `operator` is 'In' or 'NotIn'"),
            "{complaint}"
        );
    }

    #[test]
    fn spreading_and_gates_are_checked() {
        let complaint = complaints(|spec| {
            spec.topology_spread_constraints = vec![TopologySpreadConstraint::default()]
        });
        assert!(complaint.contains("must be greater than zero"));
        let gate = PodSchedulingGate { name: "a/b".into() };
        let complaint = complaints(|spec| spec.scheduling_gates = vec![gate.clone(), gate]);
        assert_eq!(
            complaint,
            r#"spec.schedulingGates[1]: Duplicate value: "a/b""#
        );
    }
}
