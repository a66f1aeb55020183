//! Required anti-affinity of Pods that have a node.
//!
//! This scheduler does not bind such Pods, but they may be created with a `spec.nodeName`.

use setpoint_model::{Meta, Selector};
use setpoint_proto::core::{PodAffinityTerm, PodSpec};

/// A term of an existing Pod: Pods that it repels may not run in the same domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The label whose values are the domains.
    pub topology_key: String,
    selector: Selector,
    /// The namespaces of the Pods; `None` for all.
    namespaces: Option<Vec<String>>,
}

/// A term and the domain in which it holds.
#[derive(Clone, Debug)]
pub struct Existing {
    /// The Pod's term.
    pub term: Term,
    /// The value of the topology key on the Pod's node.
    pub domain: String,
}

impl Term {
    /// Returns the terms of a Pod in `namespace`.
    pub fn of_pod(spec: &PodSpec, namespace: &str) -> Vec<Self> {
        let affinity = spec.affinity.as_ref();
        let anti = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
        let terms = anti.map(|anti| &anti.required_during_scheduling_ignored_during_execution);
        let terms = terms.into_iter().flatten();
        terms.map(|term| Self::of(term, namespace)).collect()
    }

    /// Fields that are not evaluated here (labels of namespaces, `matchLabelKeys`) count as matching.
    fn of(term: &PodAffinityTerm, namespace: &str) -> Self {
        let selector = term.label_selector.as_ref();
        let selector = selector.map(|labels| {
            Selector::from_label_selector(labels).unwrap_or_else(|_| Selector::everything())
        });
        let mut namespaces = term.namespaces.clone();
        if namespaces.is_empty() {
            namespaces.push(namespace.to_owned());
        }
        Self {
            topology_key: term.topology_key.clone(),
            selector: selector.unwrap_or_else(Selector::nothing),
            namespaces: term.namespace_selector.is_none().then_some(namespaces),
        }
    }

    /// Returns whether the term keeps the Pod out of the domain.
    pub fn repels(&self, pod: &Meta) -> bool {
        let namespaces = self.namespaces.as_ref();
        namespaces.is_none_or(|namespaces| namespaces.contains(&pod.key.namespace))
            && self.selector.matches(&pod.labels)
    }
}

#[cfg(test)]
mod tests {
    use setpoint_model::Key;
    use setpoint_proto::core::{Affinity, PodAntiAffinity};
    use setpoint_proto::meta::LabelSelector;

    use super::*;

    fn pod(namespace: &str, app: &str) -> Meta {
        Meta {
            key: Key::new(namespace, "new"),
            labels: [("app".to_owned(), app.to_owned())].into(),
            ..Default::default()
        }
    }

    fn term(term: PodAffinityTerm) -> Term {
        let spec = PodSpec {
            affinity: Some(Affinity {
                pod_anti_affinity: Some(PodAntiAffinity {
                    required_during_scheduling_ignored_during_execution: vec![term],
                    ..Default::default()
                }),
                ..Default::default()
            }),
            ..Default::default()
        };
        Term::of_pod(&spec, "own").remove(0)
    }

    fn to_web() -> PodAffinityTerm {
        PodAffinityTerm {
            label_selector: Some(LabelSelector {
                match_labels: [("app".to_owned(), "web".to_owned())].into(),
                ..Default::default()
            }),
            topology_key: "zone".into(),
            ..Default::default()
        }
    }

    /// Checks F5.
    #[test]
    fn a_term_repels_pods_by_labels_and_namespace() {
        let own = term(to_web());
        assert!(own.repels(&pod("own", "web")));
        assert!(!own.repels(&pod("own", "db")));
        assert!(!own.repels(&pod("other", "web")));
        let listed = term(PodAffinityTerm {
            namespaces: vec!["other".into()],
            ..to_web()
        });
        assert!(listed.repels(&pod("other", "web")) && !listed.repels(&pod("own", "web")));
        let everywhere = term(PodAffinityTerm {
            namespace_selector: Some(LabelSelector::default()),
            ..to_web()
        });
        assert!(everywhere.repels(&pod("other", "web")));
        let nobody = term(PodAffinityTerm {
            label_selector: None,
            ..to_web()
        });
        assert!(!nobody.repels(&pod("own", "web")));
    }
}
