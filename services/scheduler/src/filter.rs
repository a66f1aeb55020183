//! Which nodes a Pod can run on, and what speaks against the others.

#![warn(clippy::arithmetic_side_effects)]

use std::fmt;

use setpoint_proto::core::{NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration};

use crate::anti_affinity::Existing;
use crate::node::NodeView;
use crate::pod::{NodeWants, PodView};
use crate::ports::HostPort;
use crate::world::Candidate;

/// Why a node cannot take a Pod, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Objection {
    /// Cordoned.
    Unschedulable,
    /// It has a taint that the Pod does not tolerate.
    Taint(String),
    /// Its labels are not those that the Pod asks for.
    Affinity,
    /// One of its Pods has a port that the Pod asks for.
    Ports,
    /// A Pod on it, or in the same domain, repels the Pod.
    AntiAffinity,
    /// The Pod has a constraint in this field that is not evaluated here; ours, as upstream evaluates them all.
    Unsupported(&'static str),
    /// It runs as many Pods as it may.
    TooManyPods,
    /// It has too little of a resource left.
    Insufficient(String),
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unschedulable => f.write_str("node(s) were unschedulable"),
            Self::Taint(taint) => write!(f, "node(s) had untolerated taint {{{taint}}}"),
            Self::Affinity => f.write_str("node(s) didn't match Pod's node affinity/selector"),
            Self::Ports => {
                f.write_str("node(s) didn't have free ports for the requested pod ports")
            }
            Self::AntiAffinity => {
                f.write_str("node(s) didn't satisfy existing pods anti-affinity rules")
            }
            Self::Unsupported(field) => {
                write!(
                    f,
                    "node(s) not checked against {field}, which this scheduler does not support"
                )
            }
            Self::TooManyPods => f.write_str("Too many pods"),
            Self::Insufficient(resource) => write!(f, "Insufficient {resource}"),
        }
    }
}

/// What speaks against `node`. Nothing does: the Pod fits. As upstream, the first filter that objects is heard;
/// only resources are all named.
pub fn objections(
    pod: &PodView,
    wants: &NodeWants,
    node: &Candidate,
    existing: &[Existing],
) -> Vec<Objection> {
    let view = &node.view;
    if !wants.unsupported.is_empty() {
        let fields = wants.unsupported.iter().copied();
        return fields.map(Objection::Unsupported).collect();
    }
    if view.unschedulable && !tolerates(&wants.tolerations, &cordon()) {
        return vec![Objection::Unschedulable];
    }
    if let Some(taint) = untolerated(wants, view) {
        return vec![Objection::Taint(format!("{}: {}", taint.key, taint.value))];
    }
    if !is_wanted(wants, view) {
        return vec![Objection::Affinity];
    }
    if !has_free(&pod.ports, node) {
        return vec![Objection::Ports];
    }
    let full = (node.pods >= view.max_pods).then_some(Objection::TooManyPods);
    let lacking = view.allocatable.lacking(&node.used, &pod.requests);
    let mut objections: Vec<_> = full
        .into_iter()
        .chain(lacking.map(|name| Objection::Insufficient(name.to_owned())))
        .collect();
    if objections.is_empty() && is_repelled(pod, view, existing) {
        objections.push(Objection::AntiAffinity);
    }
    objections
}

fn is_repelled(pod: &PodView, node: &NodeView, existing: &[Existing]) -> bool {
    existing.iter().any(|Existing { term, domain }| {
        node.labels().get(&term.topology_key) == Some(domain) && term.repels(&pod.meta)
    })
}

/// The taint that stands for `spec.unschedulable`.
fn cordon() -> Taint {
    Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Default::default()
    }
}

fn has_free(ports: &[HostPort], node: &Candidate) -> bool {
    let taken = |port: &HostPort| node.ports.iter().any(|other| port.conflicts_with(other));
    !ports.iter().any(taken)
}

fn untolerated<'a>(wants: &NodeWants, node: &'a NodeView) -> Option<&'a Taint> {
    let mut taints = node.taints.iter();
    taints.find(|taint| !tolerates(&wants.tolerations, taint))
}

/// Does one of these tolerations stand this taint?
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

fn is_wanted(wants: &NodeWants, node: &NodeView) -> bool {
    let mut selector = wants.selector.iter();
    let selected = selector.all(|(key, value)| node.labels().get(key) == Some(value));
    let terms = wants.terms.as_deref();
    selected && terms.is_none_or(|terms| terms.iter().any(|term| matches(term, node)))
}

/// A term without any requirement matches nothing.
fn matches(term: &NodeSelectorTerm, node: &NodeView) -> bool {
    let (expressions, fields) = (&term.match_expressions, &term.match_fields);
    let name = |key: &str| (key == "metadata.name").then(|| node.name());
    let label = |key: &str| node.labels().get(key).map(String::as_str);
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

    #[test]
    fn requirements_compare_as_upstream_does() {
        let requirement = |operator: &str, values: &[&str]| NodeSelectorRequirement {
            operator: operator.into(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            ..Default::default()
        };
        assert!(holds(&requirement("In", &["a", "b"]), Some("b")));
        assert!(holds(&requirement("NotIn", &["a"]), None));
        assert!(holds(&requirement("Gt", &["4"]), Some("5")));
        assert!(!holds(&requirement("Lt", &["4"]), Some("many")));
        assert!(!holds(&requirement("Like", &["a"]), Some("a")));
    }
}
