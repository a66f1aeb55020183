//! The requests that webhooks and policies select.

use setpoint_model::names;
use setpoint_proto::admissionregistration::{
    MatchResources, NamedRuleWithOperations, Rule, RuleWithOperations,
};

use super::MATCH_POLICIES;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::label_selector;

const ALL: &str = "*";
const SCOPES: &[&str] = &["*", "Cluster", "Namespaced"];
const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
/// The operations on objects that can be changed.
const MUTABLE: &[&str] = &["*", "CONNECT", "CREATE", "UPDATE"];

/// Sets the scope that the user left out.
pub(super) fn fill_defaults(rule: &mut RuleWithOperations) {
    rule.rule.scope.get_or_insert_with(|| ALL.into());
}

/// Sets the fields of the resources of a policy or binding that the user left out.
pub(super) fn fill_resources(resources: Option<&mut MatchResources>) {
    let Some(resources) = resources else { return };
    let policy = &mut resources.match_policy;
    policy.get_or_insert_with(|| "Equivalent".into());
    resources.namespace_selector.get_or_insert_default();
    resources.object_selector.get_or_insert_default();
    let rules = resources.resource_rules.iter_mut();
    for rule in rules.chain(&mut resources.exclude_resource_rules) {
        fill_defaults(&mut rule.rule_with_operations);
    }
}

/// Validates the resources of a policy or binding.
pub(super) fn validate_resources(
    resources: &MatchResources,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("matchPolicy");
    match resources.match_policy.as_deref() {
        None => errors.required(&at, ""),
        policy => errors.one_of(&at, policy, MATCH_POLICIES),
    }
    for (field, selector) in [
        ("namespaceSelector", &resources.namespace_selector),
        ("objectSelector", &resources.object_selector),
    ] {
        if selector.is_none() {
            errors.required(&path.field(field), "");
        }
        label_selector::validate(selector.as_ref(), &path.field(field), errors);
    }
    for (field, rules) in [
        ("resourceRules", &resources.resource_rules),
        ("excludeResourceRules", &resources.exclude_resource_rules),
    ] {
        let at = path.field(field);
        for (index, rule) in rules.iter().enumerate() {
            validate_named(rule, &at.index(index), errors);
        }
    }
}

/// Validates that a policy which changes objects selects no deletions.
pub(super) fn validate_mutable(
    resources: &MatchResources,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("resourceRules");
    let rules = resources.resource_rules.iter();
    for operation in rules.flat_map(|rule| &rule.rule_with_operations.operations) {
        errors.one_of(&at.field("operations"), operation.as_str(), MUTABLE);
    }
}

fn validate_named(rule: &NamedRuleWithOperations, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("resourceNames");
    for (index, name) in rule.resource_names.iter().enumerate() {
        errors.check(&at.index(index), name, names::validate_path_segment);
        if rule.resource_names[..index].contains(name) {
            errors.duplicate(&at.index(index), name);
        }
    }
    validate(&rule.rule_with_operations, path, errors);
}

/// Validates a rule.
pub(super) fn validate(rule: &RuleWithOperations, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (operations, at) = (&rule.operations, path.field("operations"));
    validate_wildcard(operations, "operations", &at, errors);
    for (index, operation) in operations.iter().enumerate() {
        errors.one_of(&at.index(index), operation.as_str(), OPERATIONS);
    }
    let Rule {
        api_groups,
        api_versions,
        resources,
        scope,
    } = &rule.rule;
    validate_wildcard(api_groups, "API groups", &path.field("apiGroups"), errors);
    let at = path.field("apiVersions");
    validate_wildcard(api_versions, "API versions", &at, errors);
    for (index, version) in api_versions.iter().enumerate() {
        errors.not_empty(&at.index(index), version);
    }
    validate_names(resources, &path.field("resources"), errors);
    errors.one_of(&path.field("scope"), scope.as_deref(), SCOPES);
}

/// Validates a list with at least one entry, in which `*` stands alone.
fn validate_wildcard(list: &[String], of: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if list.is_empty() {
        errors.required(path, "");
    }
    if list.len() > 1 && list.iter().any(|entry| entry == ALL) {
        let detail = format!("if '*' is present, must not specify other {of}");
        errors.invalid(path, list, detail);
    }
}

/// Validates names of resources, of subresources (`pods/log`) and their wildcards (`*`, `*/scale`, `pods/*`, `*/*`).
fn validate_names(resources: &[String], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if resources.is_empty() {
        errors.required(path, "");
    }
    for (index, resource) in resources.iter().enumerate() {
        let at = path.index(index);
        errors.not_empty(&at, resource);
        let Some((of, sub)) = resource.split_once('/') else {
            continue;
        };
        let before = &resources[..index];
        for wildcard in [format!("{of}/*"), format!("*/{sub}")] {
            if before.contains(&wildcard) {
                let detail = format!("if '{wildcard}' is present, must not specify {resource}");
                errors.invalid(&at, resource, detail);
            }
        }
    }
    let has = |wildcard: &str| resources.iter().any(|one| one == wildcard);
    if resources.len() > 1 && has("*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.invalid(path, resources, detail);
    }
    let mut whole = resources.iter().filter(|one| !one.contains('/'));
    if has(ALL) && whole.any(|one| one != ALL) {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.invalid(path, resources, detail);
    }
}
