//! The scopes of quotas: the objects that a quota counts.

use std::collections::BTreeSet;

use setpoint_codec::Object;
use setpoint_proto::core::{
    PersistentVolumeClaim, Pod, PodAffinityTerm, ResourceQuotaSpec,
    ScopedResourceSelectorRequirement, WeightedPodAffinityTerm,
};

use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::validation::field_path::FieldPath;
use crate::registry::validation::podspec;

const TERMINATING: &str = "Terminating";
const NOT_TERMINATING: &str = "NotTerminating";
const BEST_EFFORT: &str = "BestEffort";
const NOT_BEST_EFFORT: &str = "NotBestEffort";
const PRIORITY_CLASS: &str = "PriorityClass";
const CROSS_NAMESPACE: &str = "CrossNamespacePodAffinity";
const ATTRIBUTES_CLASS: &str = "VolumeAttributesClass";
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

/// Returns whether an object is in all scopes of a quota.
pub(crate) fn matches(spec: &ResourceQuotaSpec, object: &dyn Object) -> bool {
    let plain = |scope: &String| is_in(object, scope, "Exists", &[]);
    let selected = |term: &ScopedResourceSelectorRequirement| {
        is_in(object, &term.scope_name, &term.operator, &term.values)
    };
    spec.scopes.iter().all(plain) && terms(spec).iter().all(selected)
}

fn terms(spec: &ResourceQuotaSpec) -> &[ScopedResourceSelectorRequirement] {
    let selector = spec.scope_selector.as_ref();
    selector.map_or(&[], |selector| &selector.match_expressions)
}

fn is_in(object: &dyn Object, scope: &str, operator: &str, values: &[String]) -> bool {
    if let Some(pod) = object.downcast_ref::<Pod>() {
        return pod_is_in(pod, scope, operator, values);
    }
    match object.downcast_ref::<PersistentVolumeClaim>() {
        Some(claim) if scope == ATTRIBUTES_CLASS => {
            let status = &claim.status;
            let target = status.modify_volume_status.as_ref();
            let classes = [
                claim.spec.volume_attributes_class_name.as_deref(),
                status.current_volume_attributes_class_name.as_deref(),
                target.map(|target| target.target_volume_attributes_class_name.as_str()),
            ];
            let classes = classes.into_iter().flatten();
            let classes: Vec<_> = classes.filter(|class| !class.is_empty()).collect();
            match classes.is_empty() {
                true => selects(None, operator, values),
                false => classes
                    .iter()
                    .any(|class| selects(Some(class), operator, values)),
            }
        }
        _ => false,
    }
}

fn pod_is_in(pod: &Pod, scope: &str, operator: &str, values: &[String]) -> bool {
    let spec = &pod.spec;
    let ends = || {
        spec.active_deadline_seconds
            .is_some_and(|deadline| deadline >= 0)
    };
    let best_effort = || podspec::qos_class(spec) == BEST_EFFORT;
    match scope {
        TERMINATING => ends(),
        NOT_TERMINATING => !ends(),
        BEST_EFFORT => best_effort(),
        NOT_BEST_EFFORT => !best_effort(),
        PRIORITY_CLASS => {
            let class = Some(spec.priority_class_name.as_str());
            selects(class.filter(|class| !class.is_empty()), operator, values)
        }
        CROSS_NAMESPACE => crosses_namespaces(pod),
        _ => false,
    }
}

/// Evaluates the operator of a selector.
fn selects(value: Option<&str>, operator: &str, values: &[String]) -> bool {
    let listed = value.is_some_and(|value| values.iter().any(|listed| listed == value));
    match operator {
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "In" => listed,
        "NotIn" => !listed,
        _ => false,
    }
}

/// Returns whether a term of the affinity to Pods selects namespaces.
fn crosses_namespaces(pod: &Pod) -> bool {
    fn any(required: &[PodAffinityTerm], preferred: &[WeightedPodAffinityTerm]) -> bool {
        let preferred = preferred.iter().map(|term| &term.pod_affinity_term);
        let mut terms = required.iter().chain(preferred);
        terms.any(|term| !term.namespaces.is_empty() || term.namespace_selector.is_some())
    }
    let Some(affinity) = &pod.spec.affinity else {
        return false;
    };
    let near = affinity.pod_affinity.as_ref().is_some_and(|near| {
        any(
            &near.required_during_scheduling_ignored_during_execution,
            &near.preferred_during_scheduling_ignored_during_execution,
        )
    });
    near || affinity.pod_anti_affinity.as_ref().is_some_and(|far| {
        any(
            &far.required_during_scheduling_ignored_during_execution,
            &far.preferred_during_scheduling_ignored_during_execution,
        )
    })
}

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
