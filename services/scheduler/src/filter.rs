//! Filters the nodes that a Pod can run on, and returns the reasons against the others.

#![warn(clippy::arithmetic_side_effects)]

use std::fmt;

use setpoint_model::HostPort;
use setpoint_model::placement::{self, tolerates};
use setpoint_proto::core::Taint;

use crate::anti_affinity::Existing;
use crate::node::NodeView;
use crate::pod::{NodeWants, PodView};
use crate::snapshot::NodeInfo;

/// A reason why a node cannot take a Pod, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FilterReason {
    /// The node is cordoned.
    Unschedulable,
    /// The node has a taint that the Pod does not tolerate.
    Taint(String),
    /// The labels of the node do not match the Pod's selector or affinity.
    Affinity,
    /// A host port of the Pod is in use.
    Ports,
    /// The required anti-affinity of a Pod in the same domain matches the Pod.
    AntiAffinity,
    /// This field of the Pod has a constraint that is not evaluated. Upstream evaluates all of them.
    Unsupported(&'static str),
    /// The node has its maximum number of Pods.
    TooManyPods,
    /// The node has too little of this resource left.
    Insufficient(String),
}

impl fmt::Display for FilterReason {
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

/// Returns the reasons why `node` cannot take the Pod; none if the Pod fits. As upstream, only the first filter that
/// rejects it is reported, but every resource that is short.
pub fn reasons(
    pod: &PodView,
    wants: &NodeWants,
    node: &NodeInfo,
    existing: &[Existing],
) -> Vec<FilterReason> {
    let view = &node.view;
    if !wants.unsupported.is_empty() {
        let fields = wants.unsupported.iter().copied();
        return fields.map(FilterReason::Unsupported).collect();
    }
    if view.unschedulable && !tolerates(&wants.tolerations, &cordon()) {
        return vec![FilterReason::Unschedulable];
    }
    if let Some(taint) = untolerated(wants, view) {
        return vec![FilterReason::Taint(format!(
            "{}: {}",
            taint.key, taint.value
        ))];
    }
    if !is_wanted(wants, view) {
        return vec![FilterReason::Affinity];
    }
    if !has_free(&pod.ports, node) {
        return vec![FilterReason::Ports];
    }
    let full = (node.pods >= view.max_pods).then_some(FilterReason::TooManyPods);
    let lacking = view.allocatable.lacking(&node.used, &pod.requests);
    let mut reasons: Vec<_> = full
        .into_iter()
        .chain(lacking.map(|name| FilterReason::Insufficient(name.to_owned())))
        .collect();
    if reasons.is_empty() && is_repelled(pod, view, existing) {
        reasons.push(FilterReason::AntiAffinity);
    }
    reasons
}

fn is_repelled(pod: &PodView, node: &NodeView, existing: &[Existing]) -> bool {
    existing.iter().any(|Existing { term, domain }| {
        node.labels().get(&term.topology_key) == Some(domain) && term.repels(&pod.meta)
    })
}

/// Returns the taint that `spec.unschedulable` implies.
fn cordon() -> Taint {
    Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Default::default()
    }
}

fn has_free(ports: &[HostPort], node: &NodeInfo) -> bool {
    let taken = |port: &HostPort| node.ports.iter().any(|other| port.conflicts_with(other));
    !ports.iter().any(taken)
}

fn untolerated<'a>(wants: &NodeWants, node: &'a NodeView) -> Option<&'a Taint> {
    let mut taints = node.taints.iter();
    taints.find(|taint| !tolerates(&wants.tolerations, taint))
}

fn is_wanted(wants: &NodeWants, node: &NodeView) -> bool {
    let terms = wants.terms.as_deref();
    placement::is_wanted(&wants.selector, terms, node.name(), node.labels())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use setpoint_proto::core::Toleration;

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

    fn node(labels: &[(&str, &str)]) -> NodeView {
        let mut node = NodeView {
            max_pods: 1,
            ..Default::default()
        };
        node.meta.key.name = "one".into();
        let labels = labels.iter();
        node.meta.labels = labels
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        node
    }

    fn reasons_of(node: NodeView, wants: NodeWants) -> Vec<FilterReason> {
        let pod = PodView::default();
        reasons(&pod, &wants, &NodeInfo::new(Arc::new(node)), &[])
    }

    /// Checks C8.
    #[test]
    fn a_cordoned_node_takes_pods_that_tolerate_that_alone() {
        let cordoned = || NodeView {
            unschedulable: true,
            ..node(&[])
        };
        let wants = |toleration| NodeWants {
            tolerations: vec![toleration],
            ..Default::default()
        };
        let key = "node.kubernetes.io/unschedulable";
        let tolerant = wants(toleration(key, "Exists", "", "NoSchedule"));
        assert!(reasons_of(cordoned(), tolerant).is_empty());
        let refused = [FilterReason::Unschedulable];
        let plain = reasons_of(cordoned(), NodeWants::default());
        assert_eq!(plain, refused);
        let executing = wants(toleration(key, "Exists", "", "NoExecute"));
        assert_eq!(reasons_of(cordoned(), executing), refused);
        let other = wants(toleration("other", "Exists", "", ""));
        assert_eq!(reasons_of(cordoned(), other), refused);
        assert!(reasons_of(node(&[]), NodeWants::default()).is_empty());
    }

    #[test]
    fn a_node_takes_as_many_pods_as_it_may() {
        let full = NodeView {
            max_pods: 0,
            ..node(&[])
        };
        let reasons = reasons_of(full, NodeWants::default());
        assert_eq!(reasons, [FilterReason::TooManyPods]);
    }

    #[test]
    fn reasons_are_worded_as_upstream() {
        let wording = [
            (FilterReason::Unschedulable, "node(s) were unschedulable"),
            (
                FilterReason::Affinity,
                "node(s) didn't match Pod's node affinity/selector",
            ),
            (FilterReason::TooManyPods, "Too many pods"),
            (FilterReason::Insufficient("gpu".into()), "Insufficient gpu"),
        ];
        for (objection, words) in wording {
            assert_eq!(objection.to_string(), words);
        }
    }
}
