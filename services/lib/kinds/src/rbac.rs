//! Role, ClusterRole, RoleBinding and ClusterRoleBinding: rules are complete, and the role of a binding is immutable.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_proto::rbac::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};

use super::StoredKind;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::label_selector;

const GROUP: &str = "rbac.authorization.k8s.io";

impl StoredKind for Role {
    const CREATES_ON_UPDATE: bool = true;

    fn check_name(name: &str) -> Vec<String> {
        names::validate_path_segment(name)
    }

    fn validate(&self, errors: &mut FieldErrors) {
        validate_rules(&self.rules, true, errors);
    }
}

impl StoredKind for ClusterRole {
    const CREATES_ON_UPDATE: bool = true;

    fn check_name(name: &str) -> Vec<String> {
        names::validate_path_segment(name)
    }

    fn validate(&self, errors: &mut FieldErrors) {
        validate_rules(&self.rules, false, errors);
        let Some(aggregation) = &self.aggregation_rule else {
            return;
        };
        let path = FieldPath::root("aggregationRule");
        let path = path.field("clusterRoleSelectors");
        if aggregation.cluster_role_selectors.is_empty() {
            let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            errors.required(&path, detail);
        }
        for (index, selector) in aggregation.cluster_role_selectors.iter().enumerate() {
            label_selector::validate(Some(selector), &path.index(index), errors);
        }
    }
}

/// The items of [`StoredKind`] of a binding. `$roles` are the kinds of roles that it may grant.
macro_rules! binding_items {
    ($roles:expr, $namespaced:expr) => {
        fn check_name(name: &str) -> Vec<String> {
            names::validate_path_segment(name)
        }

        fn fill_defaults(&mut self) {
            fill_defaults(&mut self.role_ref, &mut self.subjects);
        }

        fn validate(&self, errors: &mut FieldErrors) {
            validate_role_ref(&self.role_ref, $roles, errors);
            validate_subjects(&self.subjects, $namespaced, errors);
        }

        fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
            if self.role_ref != old.role_ref {
                let path = FieldPath::root("roleRef");
                errors.invalid(&path, &self.role_ref, "cannot change roleRef");
            }
        }

        fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
            cell(column, &self.role_ref, &self.subjects)
        }
    };
}

impl StoredKind for RoleBinding {
    const CREATES_ON_UPDATE: bool = true;

    binding_items!(&["Role", "ClusterRole"], true);
}

impl StoredKind for ClusterRoleBinding {
    const CREATES_ON_UPDATE: bool = true;

    binding_items!(&["ClusterRole"], false);
}

fn validate_rules(rules: &[PolicyRule], namespaced: bool, errors: &mut FieldErrors) {
    let path = FieldPath::root("rules");
    for (index, rule) in rules.iter().enumerate() {
        validate_rule(rule, namespaced, &path.index(index), errors);
    }
}

fn validate_rule(
    rule: &PolicyRule,
    namespaced: bool,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if rule.verbs.is_empty() {
        errors.required(
            &path.field("verbs"),
            "verbs must contain at least one value",
        );
    }
    let (groups, resources) = (&rule.api_groups, &rule.resources);
    if rule.non_resource_urls.is_empty() {
        if groups.is_empty() {
            let detail = "resource rules must supply at least one api group";
            errors.required(&path.field("apiGroups"), detail);
        }
        if resources.is_empty() {
            let detail = "resource rules must supply at least one resource";
            errors.required(&path.field("resources"), detail);
        }
        return;
    }
    let (at, urls) = (path.field("nonResourceURLs"), &rule.non_resource_urls);
    if namespaced {
        errors.invalid(
            &at,
            urls,
            "namespaced rules cannot apply to non-resource URLs",
        );
    }
    if !(groups.is_empty() && resources.is_empty() && rule.resource_names.is_empty()) {
        let detail = "rules cannot apply to both regular resources and non-resource URLs";
        errors.invalid(&at, urls, detail);
    }
}

fn fill_defaults(role: &mut RoleRef, subjects: &mut [Subject]) {
    if role.api_group.is_empty() {
        role.api_group = GROUP.into();
    }
    for subject in subjects {
        let is_person = ["User", "Group"].contains(&subject.kind.as_str());
        if is_person && subject.api_group.is_empty() {
            subject.api_group = GROUP.into();
        }
    }
}

fn validate_role_ref(role: &RoleRef, kinds: &[&str], errors: &mut FieldErrors) {
    let path = FieldPath::root("roleRef");
    validate_group(&role.api_group, GROUP, &path, errors);
    if !kinds.contains(&role.kind.as_str()) {
        errors.unsupported(&path.field("kind"), &role.kind, kinds);
    }
    let (at, name) = (path.field("name"), role.name.as_str());
    match name {
        "" => errors.required(&at, ""),
        _ => errors.all_invalid(&at, name, names::validate_path_segment(name)),
    }
}

fn validate_subjects(subjects: &[Subject], namespaced: bool, errors: &mut FieldErrors) {
    let path = FieldPath::root("subjects");
    for (index, subject) in subjects.iter().enumerate() {
        validate_subject(subject, namespaced, &path.index(index), errors);
    }
}

fn validate_subject(
    subject: &Subject,
    namespaced: bool,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let (at, name) = (path.field("name"), subject.name.as_str());
    if name.is_empty() {
        errors.required(&at, "");
    }
    match subject.kind.as_str() {
        "ServiceAccount" => {
            if !name.is_empty() {
                errors.all_invalid(&at, name, names::validate_dns_subdomain(name));
            }
            validate_group(&subject.api_group, "", path, errors);
            if !namespaced && subject.namespace.is_empty() {
                errors.required(&path.field("namespace"), "");
            }
        }
        "User" | "Group" => validate_group(&subject.api_group, GROUP, path, errors),
        other => {
            let kinds = &["Group", "ServiceAccount", "User"];
            errors.unsupported(&path.field("kind"), other, kinds);
        }
    }
}

fn validate_group(group: &str, supported: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if group != supported {
        errors.unsupported(&path.field("apiGroup"), group, &[supported]);
    }
}

fn cell(column: &str, role: &RoleRef, subjects: &[Subject]) -> Option<Value> {
    let of = |kind: &str| {
        let named = subjects.iter().filter(|subject| subject.kind == kind);
        named
            .map(|subject| subject.name.clone())
            .collect::<Vec<_>>()
    };
    Some(match column {
        "Role" => format!("{}/{}", role.kind, role.name).into(),
        "Users" => of("User").join(", ").into(),
        "Groups" => of("Group").join(", ").into(),
        "ServiceAccounts" => {
            let accounts = subjects
                .iter()
                .filter(|subject| subject.kind == "ServiceAccount");
            let accounts =
                accounts.map(|subject| format!("{}/{}", subject.namespace, subject.name));
            accounts.collect::<Vec<_>>().join(", ").into()
        }
        _ => return None,
    })
}
