//! Nodes: a node writes itself only, and nothing by which it would attract Pods that are not meant for it.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_proto::core::Node;

use super::{Outcome, Write, forbidden};
use crate::admission::Operation;

/// The labels of Kubernetes that a node sets itself (upstream: `kubeletLabels`).
const OWN_LABELS: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
/// The domains of Kubernetes whose labels a node sets itself.
const OWN_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
/// The domain of labels that no node sets.
const RESTRICTED: &str = "node-restriction.kubernetes.io";

impl Write<'_> {
    pub(super) fn check_node(&self) -> Outcome {
        if !self.is_of_own_name() {
            return forbidden(format!(
                "node {:?} is not allowed to modify node {:?}",
                self.node, self.request.target.name
            ));
        }
        match self.request.operation {
            Operation::Create => self.check_new_node(),
            Operation::Update => self.check_updated_node(),
            Operation::Delete | Operation::Connect => Ok(()),
        }
    }

    fn check_new_node(&self) -> Outcome {
        let (name, node) = (self.node, self.object::<Node>()?);
        if node.spec.config_source.is_some() {
            return forbidden(format!(
                "node {name:?} is not allowed to create pods with a non-nil configSource"
            ));
        }
        match forbidden_labels(&node.metadata.labels, &BTreeMap::new()) {
            None => Ok(()),
            Some(labels) => forbidden(format!(
                "node {name:?} is not allowed to set the following labels: {labels}"
            )),
        }
    }

    /// A `configSource` that is new was removed before.
    fn check_updated_node(&self) -> Outcome {
        let (name, old, new) = (self.node, self.old::<Node>()?, self.object::<Node>()?);
        if new.spec.taints != old.spec.taints {
            return forbidden(format!("node {name:?} is not allowed to modify taints"));
        }
        if new.metadata.owner_references != old.metadata.owner_references {
            return forbidden(format!(
                "node {name:?} is not allowed to modify ownerReferences"
            ));
        }
        match forbidden_labels(&new.metadata.labels, &old.metadata.labels) {
            None => Ok(()),
            Some(labels) => forbidden(format!("is not allowed to modify labels: {labels}")),
        }
    }
}

type Labels = BTreeMap<String, String>;

/// Returns the names of the labels that differ and that a node may not set; `None` if there are none.
fn forbidden_labels(new: &Labels, old: &Labels) -> Option<String> {
    let names: BTreeSet<_> = new.keys().chain(old.keys()).collect();
    let changed = names
        .into_iter()
        .filter(|name| new.get(*name) != old.get(*name));
    let refused = changed.filter(|name| !may_set(name));
    let refused: Vec<_> = refused.map(String::as_str).collect();
    (!refused.is_empty()).then(|| refused.join(", "))
}

/// Returns whether a node may set a label: one of its own, or one that is not Kubernetes'.
fn may_set(label: &str) -> bool {
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let is_in = |parent: &&str| {
        let sub = domain.strip_suffix(*parent);
        sub.is_some_and(|sub| sub.is_empty() || sub.ends_with('.'))
    };
    let is_kubernetes = ["kubernetes.io", "k8s.io"].iter().any(is_in);
    let is_own = OWN_LABELS.contains(&label) || OWN_DOMAINS.iter().any(is_in);
    !is_in(&RESTRICTED) && (!is_kubernetes || is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_sets_its_own_labels_and_those_that_are_not_kubernetes() {
        for label in OWN_LABELS {
            assert!(may_set(label), "{label}");
        }
        for label in [
            "role",
            "acme.com/role",
            "notkubernetes.io/role",
            "setpoint.dev/runtime",
            "kubelet.kubernetes.io/x",
            "a.node.kubernetes.io/x",
        ] {
            assert!(may_set(label), "{label}");
        }
        for label in [
            "kubernetes.io/x",
            "x.kubernetes.io/y",
            "k8s.io/x",
            "x.k8s.io/y",
            "node-role.kubernetes.io/control-plane",
            "node-restriction.kubernetes.io/x",
            "a.node-restriction.kubernetes.io/x",
            "othernode.kubernetes.io/x",
        ] {
            assert!(!may_set(label), "{label}");
        }
    }

    #[test]
    fn only_labels_that_change_are_refused() {
        let labels = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            let pairs = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            pairs.collect::<Labels>()
        };
        let old = labels(&[
            ("k8s.io/a", "1"),
            ("k8s.io/b", "1"),
            ("k8s.io/c", "1"),
            ("d", "1"),
        ]);
        assert_eq!(forbidden_labels(&old, &old), None);
        let new = labels(&[
            ("k8s.io/a", "1"),
            ("k8s.io/b", "2"),
            ("k8s.io/e", "1"),
            ("d", "2"),
        ]);
        let refused = forbidden_labels(&new, &old);
        assert_eq!(refused.unwrap(), "k8s.io/b, k8s.io/c, k8s.io/e");
    }
}
