//! Validation of the scopes of quotas.

use std::collections::BTreeSet;

use setpoint_model::quota::{
    ATTRIBUTES_CLASS, BEST_EFFORT, CROSS_NAMESPACE, NOT_BEST_EFFORT, NOT_TERMINATING,
    PRIORITY_CLASS, TERMINATING,
};
use setpoint_proto::core::{ResourceQuotaSpec, ScopedResourceSelectorRequirement};

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const SCOPES: [&str; 7] = [
    TERMINATING,
    NOT_TERMINATING,
    BEST_EFFORT,
    NOT_BEST_EFFORT,
    PRIORITY_CLASS,
    CROSS_NAMESPACE,
    ATTRIBUTES_CLASS,
];
/// Scopes that only exist or not.
const WITHOUT_VALUES: [&str; 5] = [
    BEST_EFFORT,
    NOT_BEST_EFFORT,
    TERMINATING,
    NOT_TERMINATING,
    CROSS_NAMESPACE,
];
const CONTRADICTIONS: [[&str; 2]; 2] = [
    [BEST_EFFORT, NOT_BEST_EFFORT],
    [TERMINATING, NOT_TERMINATING],
];
const COMPUTE: [&str; 6] = [
    "cpu",
    "memory",
    "limits.cpu",
    "limits.memory",
    "requests.cpu",
    "requests.memory",
];
/// Other resources of quotas without a domain, and their prefixes.
const OTHERS: [&str; 12] = [
    "ephemeral-storage",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.ephemeral-storage",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];
const HUGE_PAGES: [&str; 2] = ["hugepages-", "requests.hugepages-"];

/// Validates the scopes and the scope selector of a quota.
pub(super) fn validate(spec: &ResourceQuotaSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("scopes");
    let scopes: BTreeSet<_> = spec.scopes.iter().map(String::as_str).collect();
    for scope in &spec.scopes {
        if !SCOPES.contains(&scope.as_str()) {
            errors.invalid(&at, &spec.scopes, "unsupported scope");
        }
        for _ in inapplicable(spec, scope) {
            errors.invalid(&at, &spec.scopes, "unsupported scope applied to resource");
        }
    }
    for _ in contradictions(&scopes) {
        errors.invalid(&at, &spec.scopes, "conflicting scopes");
    }
    if let Some(selector) = &spec.scope_selector {
        let path = path.field("scopeSelector");
        let path = path.field("matchExpressions");
        for term in &selector.match_expressions {
            validate_term(spec, term, &path, errors);
        }
        let scopes = selector.match_expressions.iter();
        let scopes: BTreeSet<_> = scopes.map(|term| term.scope_name.as_str()).collect();
        for _ in contradictions(&scopes) {
            errors.invalid(&path, selector, "conflicting scopes");
        }
    }
}

fn validate_term(
    spec: &ResourceQuotaSpec,
    term: &ScopedResourceSelectorRequirement,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let scope = term.scope_name.as_str();
    if !SCOPES.contains(&scope) {
        errors.invalid(&path.field("scopeName"), scope, "unsupported scope");
    }
    for _ in inapplicable(spec, scope) {
        let detail = "unsupported scope applied to resource";
        errors.invalid(path, &spec.scope_selector, detail);
    }
    let operator = path.field("operator");
    if WITHOUT_VALUES.contains(&scope) && term.operator != "Exists" {
        let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
            ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
            ResourceQuotaScopeCrossNamespacePodAffinity";
        errors.invalid(&operator, &term.operator, detail);
    }
    let values = path.field("values");
    match term.operator.as_str() {
        "In" | "NotIn" if term.values.is_empty() => {
            let detail =
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            errors.required(&values, detail);
        }
        "Exists" | "DoesNotExist" if !term.values.is_empty() => {
            let detail =
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            errors.invalid(&values, &term.values, detail);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => errors.invalid(&operator, &term.operator, "not a valid selector operator"),
    }
}

fn contradictions<'a>(
    scopes: &'a BTreeSet<&str>,
) -> impl Iterator<Item = [&'static str; 2]> + use<'a> {
    let pairs = CONTRADICTIONS.into_iter();
    pairs.filter(move |pair| pair.iter().all(|scope| scopes.contains(scope)))
}

/// Returns the resources of a quota that a scope does not apply to.
fn inapplicable<'a>(
    spec: &'a ResourceQuotaSpec,
    scope: &'a str,
) -> impl Iterator<Item = &'a String> {
    let names = spec.hard.keys();
    names.filter(move |name| is_standard(name) && !applies(scope, name))
}

fn is_standard(name: &str) -> bool {
    name == "pods"
        || COMPUTE.contains(&name)
        || OTHERS.contains(&name)
        || HUGE_PAGES.iter().any(|prefix| name.starts_with(prefix))
}

fn applies(scope: &str, name: &str) -> bool {
    match scope {
        BEST_EFFORT => name == "pods",
        ATTRIBUTES_CLASS => ["persistentvolumeclaims", "requests.storage"].contains(&name),
        scope if SCOPES.contains(&scope) => name == "pods" || COMPUTE.contains(&name),
        _ => true,
    }
}
