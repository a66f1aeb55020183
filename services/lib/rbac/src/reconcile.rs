//! Completes the roles and bindings that every cluster has. What others have added to them stays.

use std::collections::BTreeMap;

use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::rbac::{
    AggregationRule, ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef,
    Subject,
};

use super::bootstrap::AUTOUPDATE;
use super::covers;

/// The change that makes an existing object complete.
#[derive(Clone, Debug, PartialEq)]
pub enum Change<T> {
    /// It is complete, or protected by its annotation.
    None,
    /// It is replaced by this one.
    Update(T),
    /// It refers to another role, which cannot be changed: it is deleted and created again.
    Recreate,
}

/// A kind of objects that every cluster has some of.
pub trait Reconcile: Clone + PartialEq {
    /// Returns the metadata.
    fn metadata(&self) -> &ObjectMeta;
    /// Returns the metadata to change.
    fn metadata_mut(&mut self) -> &mut ObjectMeta;
    /// Adds what the expected object has besides. Returns whether that is possible.
    fn complete(&mut self, expected: &Self) -> bool;
}

/// Returns what makes an existing object have all that the expected one has.
pub fn change<T: Reconcile>(existing: &T, expected: &T) -> Change<T> {
    let protection = existing.metadata().annotations.get(AUTOUPDATE);
    if protection.is_some_and(|value| value == "false") {
        return Change::None;
    }
    let mut changed = existing.clone();
    if !changed.complete(expected) {
        return Change::Recreate;
    }
    let (meta, given) = (changed.metadata_mut(), expected.metadata());
    add_absent(&mut meta.labels, &given.labels);
    add_absent(&mut meta.annotations, &given.annotations);
    match changed == *existing {
        true => Change::None,
        false => Change::Update(changed),
    }
}

fn add_absent(to: &mut BTreeMap<String, String>, from: &BTreeMap<String, String>) {
    for (key, value) in from {
        to.entry(key.clone()).or_insert_with(|| value.clone());
    }
}

fn add_rules(to: &mut Vec<PolicyRule>, expected: &[PolicyRule]) {
    let missing = covers(&*to, expected);
    to.extend(missing);
}

fn add_subjects(to: &mut Vec<Subject>, expected: &[Subject]) {
    for subject in expected {
        if !to.contains(subject) {
            to.push(subject.clone());
        }
    }
}

fn add_selectors(to: &mut Option<AggregationRule>, expected: &AggregationRule) {
    let selectors = &mut to.get_or_insert_default().cluster_role_selectors;
    for selector in &expected.cluster_role_selectors {
        if !selectors.contains(selector) {
            selectors.push(selector.clone());
        }
    }
}

impl Reconcile for Role {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    fn complete(&mut self, expected: &Self) -> bool {
        add_rules(&mut self.rules, &expected.rules);
        true
    }
}

impl Reconcile for ClusterRole {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    fn complete(&mut self, expected: &Self) -> bool {
        // The rules of a role that is aggregated are those of others.
        if self.aggregation_rule.is_none() || expected.aggregation_rule.is_none() {
            add_rules(&mut self.rules, &expected.rules);
        }
        if let Some(aggregation) = &expected.aggregation_rule {
            add_selectors(&mut self.aggregation_rule, aggregation);
        }
        true
    }
}

macro_rules! reconcile_binding {
    ($binding:ty) => {
        impl Reconcile for $binding {
            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }

            fn complete(&mut self, expected: &Self) -> bool {
                add_subjects(&mut self.subjects, &expected.subjects);
                is_same(&self.role_ref, &expected.role_ref)
            }
        }
    };
}
reconcile_binding!(RoleBinding);
reconcile_binding!(ClusterRoleBinding);

/// Returns whether two references are to one role. The group of the API may be left out.
fn is_same(one: &RoleRef, other: &RoleRef) -> bool {
    (&one.kind, &one.name) == (&other.kind, &other.name)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::meta::LabelSelector;

    use super::*;

    fn rule(verbs: &[&str]) -> PolicyRule {
        PolicyRule {
            verbs: verbs.iter().map(ToString::to_string).collect(),
            api_groups: vec![String::new()],
            resources: vec!["pods".into()],
            ..PolicyRule::default()
        }
    }

    fn role(verbs: &[&str]) -> ClusterRole {
        ClusterRole {
            rules: vec![rule(verbs)],
            ..ClusterRole::default()
        }
    }

    #[test]
    fn missing_rules_and_labels_are_added_and_those_of_others_stay() {
        let mut existing = role(&["get", "delete"]);
        let meta = &mut existing.metadata;
        meta.labels.insert("a".into(), "theirs".into());
        let mut expected = role(&["get", "list"]);
        let labels = [("a", "ours"), ("b", "ours")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        expected.metadata.labels = labels.into();
        let Change::Update(changed) = change(&existing, &expected) else {
            panic!("nothing is missing");
        };
        assert_eq!(changed.rules, [rule(&["get", "delete"]), rule(&["list"])]);
        assert_eq!(changed.metadata.labels["a"], "theirs");
        assert_eq!(changed.metadata.labels["b"], "ours");
        assert_eq!(change(&changed, &expected), Change::None);
    }

    #[test]
    fn a_protected_object_is_left_alone() {
        let mut existing = role(&["get"]);
        let annotations = &mut existing.metadata.annotations;
        annotations.insert(AUTOUPDATE.into(), "false".into());
        assert_eq!(change(&existing, &role(&["list"])), Change::None);
    }

    #[test]
    fn an_aggregated_role_gets_selectors_and_no_rules() {
        let aggregated = |label: &str| ClusterRole {
            aggregation_rule: Some(AggregationRule {
                cluster_role_selectors: vec![LabelSelector {
                    match_labels: [(label.to_owned(), "true".to_owned())].into(),
                    ..LabelSelector::default()
                }],
            }),
            ..role(&[label])
        };
        let Change::Update(changed) = change(&aggregated("a"), &aggregated("b")) else {
            panic!("nothing is missing");
        };
        assert_eq!(changed.rules, [rule(&["a"])]);
        let selectors = changed.aggregation_rule.unwrap().cluster_role_selectors;
        assert_eq!(selectors.len(), 2);
    }

    #[test]
    fn a_binding_gets_subjects_and_is_made_again_for_another_role() {
        let binding = |role: &str, subject: &str| RoleBinding {
            role_ref: RoleRef {
                kind: "Role".into(),
                name: role.into(),
                ..RoleRef::default()
            },
            subjects: vec![Subject {
                name: subject.into(),
                ..Subject::default()
            }],
            ..RoleBinding::default()
        };
        let existing = binding("a", "x");
        assert_eq!(change(&existing, &binding("b", "x")), Change::Recreate);
        assert_eq!(change(&existing, &existing), Change::None);
        let Change::Update(changed) = change(&existing, &binding("a", "y")) else {
            panic!("nothing is missing");
        };
        let names = changed.subjects.iter().map(|subject| subject.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["x", "y"]);
    }
}
