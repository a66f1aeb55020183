//! The scopes of quotas: the objects that a quota counts.

use std::collections::BTreeSet;

use setpoint_proto::core::{
    PersistentVolumeClaim, Pod, PodAffinityTerm, ResourceQuotaSpec,
    ScopedResourceSelectorRequirement, WeightedPodAffinityTerm,
};

use crate::qos_class;

/// Pods with a deadline.
pub const TERMINATING: &str = "Terminating";
/// Pods without a deadline.
pub const NOT_TERMINATING: &str = "NotTerminating";
/// Pods of this quality-of-service class.
pub const BEST_EFFORT: &str = "BestEffort";
/// Pods of the other classes.
pub const NOT_BEST_EFFORT: &str = "NotBestEffort";
/// Pods with a priority class.
pub const PRIORITY_CLASS: &str = "PriorityClass";
/// Pods with affinity to Pods of other namespaces.
pub const CROSS_NAMESPACE: &str = "CrossNamespacePodAffinity";
/// Claims with an attributes class.
pub const ATTRIBUTES_CLASS: &str = "VolumeAttributesClass";

/// Returns whether a quota counts only some objects. Those of kinds without scopes are not among them.
pub fn has_scopes(spec: &ResourceQuotaSpec) -> bool {
    !spec.scopes.is_empty() || !terms(spec).is_empty()
}

/// Returns whether a Pod is in all scopes of a quota.
pub fn pod_matches(spec: &ResourceQuotaSpec, pod: &Pod) -> bool {
    matches(spec, |scope, operator, values| {
        pod_is_in(pod, scope, operator, values)
    })
}

/// Returns whether a claim is in all scopes of a quota.
pub fn claim_matches(spec: &ResourceQuotaSpec, claim: &PersistentVolumeClaim) -> bool {
    matches(spec, |scope, operator, values| {
        scope == ATTRIBUTES_CLASS && claim_is_in(claim, operator, values)
    })
}

fn matches(spec: &ResourceQuotaSpec, is_in: impl Fn(&str, &str, &[String]) -> bool) -> bool {
    let plain = |scope: &String| is_in(scope, "Exists", &[]);
    let selected = |term: &ScopedResourceSelectorRequirement| {
        is_in(&term.scope_name, &term.operator, &term.values)
    };
    spec.scopes.iter().all(plain) && terms(spec).iter().all(selected)
}

fn terms(spec: &ResourceQuotaSpec) -> &[ScopedResourceSelectorRequirement] {
    let selector = spec.scope_selector.as_ref();
    selector.map_or(&[], |selector| &selector.match_expressions)
}

fn claim_is_in(claim: &PersistentVolumeClaim, operator: &str, values: &[String]) -> bool {
    let classes = attributes_classes(claim);
    let selected = |class: &&str| selects(Some(class), operator, values);
    match classes.is_empty() {
        true => selects(None, operator, values),
        false => classes.iter().any(selected),
    }
}

/// Returns the attributes classes of a claim: the one that it should have, the one that its volume has, and the one
/// that this is being changed to.
pub fn attributes_classes(claim: &PersistentVolumeClaim) -> BTreeSet<&str> {
    let status = &claim.status;
    let target = status.modify_volume_status.as_ref();
    let classes = [
        claim.spec.volume_attributes_class_name.as_deref(),
        status.current_volume_attributes_class_name.as_deref(),
        target.map(|target| target.target_volume_attributes_class_name.as_str()),
    ];
    let classes = classes.into_iter().flatten();
    classes.filter(|class| !class.is_empty()).collect()
}

fn pod_is_in(pod: &Pod, scope: &str, operator: &str, values: &[String]) -> bool {
    let spec = &pod.spec;
    let best_effort = || qos_class(spec) == BEST_EFFORT;
    match scope {
        TERMINATING => is_terminating(pod),
        NOT_TERMINATING => !is_terminating(pod),
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

/// Returns whether a Pod has a deadline.
pub fn is_terminating(pod: &Pod) -> bool {
    let deadline = pod.spec.active_deadline_seconds;
    deadline.is_some_and(|deadline| deadline >= 0)
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
