//! Inter-pod affinity of a Pod: its terms, parsed.

use std::collections::BTreeMap;

use setpoint_model::{Meta, Selector};
use setpoint_proto::core::{PodAffinityTerm, PodSpec, WeightedPodAffinityTerm};
use setpoint_proto::meta::{LabelSelector, LabelSelectorRequirement};

/// The labels of the namespaces, by name.
pub type Namespaces = BTreeMap<String, BTreeMap<String, String>>;

/// The terms of a Pod's affinity and anti-affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affinity {
    /// Required affinity.
    pub required: Vec<Term>,
    /// Required anti-affinity.
    pub required_anti: Vec<Term>,
    /// Preferred affinity, and preferred anti-affinity with negative weights.
    pub preferred: Vec<(Term, i64)>,
}

/// A term: Pods in the same domain that are in its scope.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// The label of nodes whose values are the domains.
    pub topology_key: String,
    /// The Pods that it matches.
    pub scope: Scope,
}

/// Pods of some namespaces with some labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The names of namespaces.
    namespaces: Vec<String>,
    /// Selects further namespaces by their labels.
    namespace_selector: Selector,
    /// Selects the Pods.
    selector: Selector,
}

impl Affinity {
    /// Returns the terms of a Pod; `None` if it has none.
    pub fn of(spec: &PodSpec, meta: &Meta) -> Option<Box<Self>> {
        let affinity = spec.affinity.as_ref()?;
        let mut terms = Self::default();
        if let Some(pods) = &affinity.pod_affinity {
            let required = &pods.required_during_scheduling_ignored_during_execution;
            terms.required = required.iter().map(|term| Term::near(term, meta)).collect();
            let preferred = &pods.preferred_during_scheduling_ignored_during_execution;
            let near = |one: &WeightedPodAffinityTerm| {
                (
                    Term::near(&one.pod_affinity_term, meta),
                    i64::from(one.weight),
                )
            };
            terms.preferred.extend(preferred.iter().map(near));
        }
        if let Some(pods) = &affinity.pod_anti_affinity {
            let required = &pods.required_during_scheduling_ignored_during_execution;
            terms.required_anti = required.iter().map(|term| Term::away(term, meta)).collect();
            let preferred = &pods.preferred_during_scheduling_ignored_during_execution;
            let away = |one: &WeightedPodAffinityTerm| {
                let weight = i64::from(one.weight).saturating_neg();
                (Term::away(&one.pod_affinity_term, meta), weight)
            };
            terms.preferred.extend(preferred.iter().map(away));
        }
        (terms != Self::default()).then(|| Box::new(terms))
    }
}

impl Term {
    /// Returns a term of affinity. A selector that cannot be parsed, which the gateway rejects, selects nothing.
    fn near(term: &PodAffinityTerm, pod: &Meta) -> Self {
        Self::of(term, pod, Selector::nothing)
    }

    /// Returns a term of anti-affinity. A selector that cannot be parsed selects everything.
    fn away(term: &PodAffinityTerm, pod: &Meta) -> Self {
        Self::of(term, pod, Selector::everything)
    }

    fn of(term: &PodAffinityTerm, pod: &Meta, invalid: fn() -> Selector) -> Self {
        let parse = |labels: &LabelSelector| {
            Selector::from_label_selector(labels).unwrap_or_else(|_| invalid())
        };
        let keys = (&*term.match_label_keys, &*term.mismatch_label_keys);
        let labels = term.label_selector.as_ref();
        let selector = labels.map(|labels| parse(&with_keys(labels, keys, pod)));
        let mut namespaces = term.namespaces.clone();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(pod.key.namespace.clone());
        }
        namespaces.sort();
        Self {
            topology_key: term.topology_key.clone(),
            scope: Scope {
                namespaces,
                namespace_selector: term
                    .namespace_selector
                    .as_ref()
                    .map_or_else(Selector::nothing, parse),
                selector: selector.unwrap_or_else(Selector::nothing),
            },
        }
    }
}

impl Scope {
    /// Returns the Pods of one namespace that `selector` selects.
    pub fn within(namespace: &str, selector: Selector) -> Self {
        Self {
            namespaces: vec![namespace.to_owned()],
            namespace_selector: Selector::nothing(),
            selector,
        }
    }

    /// Returns whether a Pod is in the scope.
    pub fn contains(&self, pod: &Meta, namespaces: &Namespaces) -> bool {
        let labels = || namespaces.get(&pod.key.namespace);
        let none = BTreeMap::new();
        (self.namespaces.contains(&pod.key.namespace)
            || self.namespace_selector.matches(labels().unwrap_or(&none)))
            && self.selector.matches(&pod.labels)
    }

    /// Returns whether a Pod may be in the scope, whatever the labels of its namespace.
    pub fn may_contain(&self, pod: &Meta) -> bool {
        (self.namespaces.contains(&pod.key.namespace) || self.selects_namespaces())
            && self.selector.matches(&pod.labels)
    }

    /// Returns whether it depends on the labels of namespaces.
    pub fn selects_namespaces(&self) -> bool {
        self.namespace_selector != Selector::nothing()
    }
}

/// Adds requirements for keys whose values are those of the Pod itself, or differ from them; keys that it does not have
/// are ignored. Upstream's apiserver does so when a Pod is created.
pub fn with_keys(
    labels: &LabelSelector,
    (same, other): (&[String], &[String]),
    pod: &Meta,
) -> LabelSelector {
    let mut labels = labels.clone();
    let operators = same.iter().map(|key| (key, "In"));
    let operators = operators.chain(other.iter().map(|key| (key, "NotIn")));
    for (key, operator) in operators {
        if let Some(value) = pod.labels.get(key) {
            labels.match_expressions.push(LabelSelectorRequirement {
                key: key.clone(),
                operator: operator.to_owned(),
                values: vec![value.clone()],
            });
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use setpoint_model::Key;
    use setpoint_proto::core::{self, PodAntiAffinity};

    use super::*;

    fn pod(namespace: &str, labels: &[(&str, &str)]) -> Meta {
        Meta {
            key: Key::new(namespace, "web"),
            labels: strings(labels),
            ..Meta::default()
        }
    }

    fn strings(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
        let labels = labels.iter();
        labels
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn to_web() -> PodAffinityTerm {
        PodAffinityTerm {
            label_selector: Some(LabelSelector {
                match_labels: strings(&[("app", "web")]),
                ..LabelSelector::default()
            }),
            topology_key: "zone".into(),
            ..PodAffinityTerm::default()
        }
    }

    fn scope(term: &PodAffinityTerm) -> Scope {
        let own = pod("own", &[("app", "web"), ("hash", "1")]);
        Term::near(term, &own).scope
    }

    /// Checks F5: namespaces are those of the list and of the selector, or the Pod's own if there is neither.
    #[test]
    fn a_term_is_about_pods_with_its_labels_in_its_namespaces() {
        let namespaces: Namespaces = [
            ("own".to_owned(), strings(&[("team", "a")])),
            ("other".to_owned(), strings(&[("team", "b")])),
        ]
        .into();
        let select = |team: &str| LabelSelector {
            match_labels: strings(&[("team", team)]),
            ..LabelSelector::default()
        };
        let everywhere = Some(LabelSelector::default());
        // The listed namespaces, the selector of others, and whether Pods in `own` and in `other` are in the scope.
        let cases = [
            (&[][..], None, (true, false)),
            (&["other"], None, (false, true)),
            (&["own", "other"], None, (true, true)),
            (&[], everywhere, (true, true)),
            (&[], Some(select("b")), (false, true)),
            (&["own"], Some(select("b")), (true, true)),
            (&[], Some(select("c")), (false, false)),
        ];
        for (listed, namespace_selector, expected) in cases {
            let scope = scope(&PodAffinityTerm {
                namespaces: listed.iter().map(|name| (*name).to_owned()).collect(),
                namespace_selector: namespace_selector.clone(),
                ..to_web()
            });
            let contains = |namespace: &str| {
                let web = pod(namespace, &[("app", "web")]);
                scope.contains(&web, &namespaces)
            };
            let found = (contains("own"), contains("other"));
            assert_eq!(found, expected, "{listed:?} {namespace_selector:?}");
            let db = pod("own", &[("app", "db")]);
            assert!(!scope.contains(&db, &namespaces) && !scope.may_contain(&db));
        }
        let none = scope(&PodAffinityTerm {
            label_selector: None,
            ..to_web()
        });
        assert!(!none.contains(&pod("own", &[("app", "web")]), &namespaces));
    }

    #[test]
    fn the_pods_own_values_of_label_keys_must_match_or_differ() {
        let keys = |same: &[&str], other: &[&str]| {
            let strings = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
            scope(&PodAffinityTerm {
                match_label_keys: strings(same),
                mismatch_label_keys: strings(other),
                ..to_web()
            })
        };
        let contains = |scope: &Scope, hash: &str| {
            let other = pod("own", &[("app", "web"), ("hash", hash)]);
            scope.contains(&other, &Namespaces::new())
        };
        let (same, other) = (keys(&["hash"], &[]), keys(&[], &["hash"]));
        assert!(contains(&same, "1") && !contains(&same, "2"));
        assert!(!contains(&other, "1") && contains(&other, "2"));
        let unknown = keys(&["unknown"], &["unknown"]);
        assert!(contains(&unknown, "1") && contains(&unknown, "2"));
    }

    #[test]
    fn preferred_anti_affinity_has_negative_weights() {
        let spec = PodSpec {
            affinity: Some(core::Affinity {
                pod_anti_affinity: Some(PodAntiAffinity {
                    preferred_during_scheduling_ignored_during_execution: vec![
                        WeightedPodAffinityTerm {
                            weight: 7,
                            pod_affinity_term: to_web(),
                        },
                    ],
                    ..PodAntiAffinity::default()
                }),
                ..core::Affinity::default()
            }),
            ..PodSpec::default()
        };
        let affinity = Affinity::of(&spec, &pod("own", &[])).expect("it has a term");
        assert_eq!(affinity.preferred[0].1, -7);
        assert_eq!(Affinity::of(&PodSpec::default(), &pod("own", &[])), None);
    }
}
