//! The nodes that a Pod can be on: node selectors, node affinity, taints and tolerations.

#![warn(clippy::arithmetic_side_effects)]

use std::collections::{BTreeMap, BTreeSet};

use setpoint_proto::core::{NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration};

/// The field of a node with its name, for `matchFields`.
pub const NAME_FIELD: &str = "metadata.name";

/// Returns whether a node has the labels of the selector and matches one of the terms of required affinity. `None`
/// matches every node, an empty list none.
pub fn is_wanted(
    selector: &BTreeMap<String, String>,
    terms: Option<&[NodeSelectorTerm]>,
    node: &str,
    labels: &BTreeMap<String, String>,
) -> bool {
    let mut selector = selector.iter();
    selector.all(|(key, value)| labels.get(key) == Some(value))
        && terms.is_none_or(|terms| terms.iter().any(|term| matches(term, node, labels)))
}

/// Returns the only nodes that terms of required affinity can match, as each of them names some in `matchFields`;
/// `None` if a term names none.
pub fn named_nodes(terms: &[NodeSelectorTerm]) -> Option<BTreeSet<&str>> {
    let names: Option<Vec<_>> = terms.iter().map(names).collect();
    let names = names.filter(|names| !names.is_empty())?;
    Some(names.into_iter().flatten().map(String::as_str).collect())
}

/// Returns the names of nodes in `matchFields`.
fn names(term: &NodeSelectorTerm) -> Option<&Vec<String>> {
    let mut fields = term.match_fields.iter();
    let field = fields.find(|field| field.key == NAME_FIELD && field.operator == "In")?;
    Some(&field.values)
}

/// Returns the terms of the node affinity that a Pod requires; `None` if it requires none.
pub fn required_terms(spec: &PodSpec) -> Option<&[NodeSelectorTerm]> {
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity
        .required_during_scheduling_ignored_during_execution
        .as_ref()?;
    Some(&required.node_selector_terms)
}

/// Returns the node that a Pod is meant for: the one that it is bound to, or the only one that its affinity names, as
/// that of a DaemonSet's Pod does.
pub fn target_node(spec: &PodSpec) -> Option<&str> {
    if !spec.node_name.is_empty() {
        return Some(&spec.node_name);
    }
    let fields = required_terms(spec)?
        .iter()
        .flat_map(|term| &term.match_fields);
    let mut named = fields.filter(|field| field.key == NAME_FIELD && field.operator == "In");
    match named.next()?.values.as_slice() {
        [node] => Some(node),
        _ => None,
    }
}

/// Returns whether one of the tolerations tolerates the taint.
pub fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| {
        let effect = toleration.effect.is_empty() || toleration.effect == taint.effect;
        let key = toleration.key.is_empty() || toleration.key == taint.key;
        let value = match toleration.operator.as_str() {
            "Exists" => true,
            _ => !toleration.key.is_empty() && toleration.value == taint.value,
        };
        effect && key && value
    })
}

/// Returns whether a term matches; one without requirements matches nothing.
pub fn matches(term: &NodeSelectorTerm, node: &str, labels: &BTreeMap<String, String>) -> bool {
    let (expressions, fields) = (&term.match_expressions, &term.match_fields);
    let name = |key: &str| (key == NAME_FIELD).then_some(node);
    let label = |key: &str| labels.get(key).map(String::as_str);
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|one| holds(one, label(&one.key)))
        && fields.iter().all(|one| holds(one, name(&one.key)))
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let listed = || value.is_some_and(|value| requirement.values.iter().any(|one| one == value));
    let numbers = || {
        let limit = requirement.values.first()?.parse::<i64>().ok()?;
        Some((value?.parse::<i64>().ok()?, limit))
    };
    match requirement.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers().is_some_and(|(value, limit)| value > limit),
        "Lt" => numbers().is_some_and(|(value, limit)| value < limit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{Affinity, NodeAffinity, NodeSelector};

    use super::*;

    fn toleration(key: &str, operator: &str, value: &str, effect: &str) -> Toleration {
        Toleration {
            key: key.into(),
            operator: operator.into(),
            value: value.into(),
            effect: effect.into(),
            ..Default::default()
        }
    }

    #[test]
    fn a_toleration_matches_by_key_value_and_effect() {
        let taint = Taint {
            key: "gpu".into(),
            value: "yes".into(),
            effect: "NoSchedule".into(),
            ..Default::default()
        };
        let tolerated = |one| tolerates(&[one], &taint);
        assert!(tolerated(toleration("", "Exists", "", "")));
        assert!(tolerated(toleration("gpu", "Exists", "", "NoSchedule")));
        assert!(tolerated(toleration("gpu", "", "yes", "")));
        assert!(!tolerated(toleration("gpu", "Equal", "no", "")));
        assert!(!tolerated(toleration("gpu", "Exists", "", "NoExecute")));
        assert!(!tolerated(toleration("", "", "yes", "")));
    }

    /// Checks C8: upstream's semantics of each operator, with and without the label.
    #[test]
    fn requirements_compare_as_upstream_does() {
        let requirement = |operator: &str, values: &[&str]| NodeSelectorRequirement {
            operator: operator.into(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            ..Default::default()
        };
        let table = [
            ("In", &["a", "b"][..], Some("b"), true),
            ("In", &["a", "b"], Some("c"), false),
            ("In", &["a"], None, false),
            ("NotIn", &["a"], Some("a"), false),
            ("NotIn", &["a"], Some("b"), true),
            ("NotIn", &["a"], None, true),
            ("Exists", &[], Some(""), true),
            ("Exists", &[], None, false),
            ("DoesNotExist", &[], Some("a"), false),
            ("DoesNotExist", &[], None, true),
            ("Gt", &["4"], Some("5"), true),
            ("Gt", &["4"], Some("4"), false),
            ("Gt", &["4"], None, false),
            ("Gt", &["four"], Some("5"), false),
            ("Lt", &["4"], Some("3"), true),
            ("Lt", &["4"], Some("4"), false),
            ("Lt", &["4"], Some("many"), false),
            ("Lt", &[], Some("3"), false),
            ("Like", &["a"], Some("a"), false),
        ];
        for (operator, values, label, expected) in table {
            let held = holds(&requirement(operator, values), label);
            assert_eq!(held, expected, "{operator} {values:?} of {label:?}");
        }
    }

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn requirement(key: &str, value: &str) -> NodeSelectorRequirement {
        NodeSelectorRequirement {
            key: key.into(),
            operator: "In".into(),
            values: vec![value.into()],
        }
    }

    #[test]
    fn every_requirement_of_one_term_must_hold() {
        let term = |labels: &[(&str, &str)], fields: &[(&str, &str)]| {
            let all = |pairs: &[(&str, &str)]| {
                let pairs = pairs.iter().map(|(key, value)| requirement(key, value));
                pairs.collect()
            };
            NodeSelectorTerm {
                match_expressions: all(labels),
                match_fields: all(fields),
            }
        };
        let node = labels(&[("disk", "ssd"), ("zone", "a")]);
        let matches = |labels: &[_], fields: &[_]| matches(&term(labels, fields), "one", &node);
        assert!(matches(&[("disk", "ssd"), ("zone", "a")], &[]));
        assert!(!matches(&[("disk", "ssd"), ("zone", "b")], &[]));
        assert!(!matches(&[], &[]), "an empty term matches nothing");
        assert!(matches(&[], &[("metadata.name", "one")]));
        assert!(!matches(&[], &[("metadata.name", "two")]));
        assert!(!matches(&[], &[("metadata.uid", "one")]));
        assert!(!matches(&[("disk", "ssd")], &[("metadata.name", "two")]));
        assert!(!matches(&[("disk", "hdd")], &[("metadata.name", "one")]));

        let is_wanted = |selector: &[(&str, &str)], terms: Option<&[NodeSelectorTerm]>| {
            is_wanted(&labels(selector), terms, "one", &node)
        };
        let ssd = || term(&[("disk", "ssd")], &[]);
        let hdd = || term(&[("disk", "hdd")], &[]);
        assert!(is_wanted(&[("zone", "a")], None));
        assert!(!is_wanted(&[("zone", "b")], None));
        assert!(is_wanted(&[], Some(&[hdd(), ssd()])));
        assert!(!is_wanted(&[], Some(&[hdd()])));
        assert!(!is_wanted(&[], Some(&[])));
        assert!(!is_wanted(&[("zone", "b")], Some(&[ssd()])));
    }

    #[test]
    fn terms_name_nodes_if_each_of_them_does() {
        let term = |fields: &[(&str, &[&str])]| NodeSelectorTerm {
            match_fields: fields
                .iter()
                .map(|(key, values)| NodeSelectorRequirement {
                    key: (*key).into(),
                    operator: "In".into(),
                    values: values.iter().map(|value| (*value).into()).collect(),
                })
                .collect(),
            ..Default::default()
        };
        let (b, a) = (term(&[(NAME_FIELD, &["b"])]), term(&[(NAME_FIELD, &["a"])]));
        let named = [b, a.clone()];
        assert_eq!(named_nodes(&named), Some(BTreeSet::from(["a", "b"])));
        assert_eq!(named_nodes(&[a, NodeSelectorTerm::default()]), None);
        assert_eq!(named_nodes(&[term(&[("metadata.uid", &["a"])])]), None);
        assert_eq!(named_nodes(&[]), None);
    }

    #[test]
    fn a_pod_is_meant_for_its_node_or_the_only_one_that_its_affinity_names() {
        let naming = |fields: &[NodeSelectorRequirement]| {
            let required = NodeSelector {
                node_selector_terms: vec![NodeSelectorTerm {
                    match_fields: fields.to_vec(),
                    ..Default::default()
                }],
            };
            let affinity = NodeAffinity {
                required_during_scheduling_ignored_during_execution: Some(required),
                ..Default::default()
            };
            PodSpec {
                affinity: Some(Affinity {
                    node_affinity: Some(affinity),
                    ..Default::default()
                }),
                ..Default::default()
            }
        };
        let one = requirement("metadata.name", "one");
        let mut pod = naming(std::slice::from_ref(&one));
        assert_eq!(target_node(&pod), Some("one"));
        pod.node_name = "two".into();
        assert_eq!(target_node(&pod), Some("two"));
        let mut several = one;
        several.values.push("two".into());
        for fields in [&[][..], &[several], &[requirement("metadata.uid", "one")]] {
            assert_eq!(target_node(&naming(fields)), None);
        }
        assert_eq!(target_node(&PodSpec::default()), None);
    }
}
