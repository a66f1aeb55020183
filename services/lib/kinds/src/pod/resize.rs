//! The subresource `resize`: CPU and memory of containers can be changed, if the node of the Pod can do that.

use std::collections::BTreeMap;

use setpoint_model::qos_class;
use setpoint_proto::core::{Container, Pod, PodSpec, ResourceRequirements};
use setpoint_proto::meta::Quantity;

use super::update;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec::MIRROR;

const MUTABLE: [&str; 2] = ["cpu", "memory"];

/// Restores everything but resources and resize policies, unless there are other containers: that is refused later.
pub(super) fn prepare(new: &mut Pod, old: &Pod) {
    let (spec, was) = (&new.spec, &old.spec);
    let same = spec.containers.len() == was.containers.len()
        && spec.init_containers.len() == was.init_containers.len();
    if !same {
        return;
    }
    let kept = PodSpec {
        containers: resized(&spec.containers, &was.containers),
        init_containers: resized(&spec.init_containers, &was.init_containers),
        resources: spec.resources.clone(),
        ..was.clone()
    };
    new.spec = kept;
    update::restore_all_but_spec(new, old);
}

/// Returns the old containers with the new resources; the new containers if they have other names.
fn resized(new: &[Container], old: &[Container]) -> Vec<Container> {
    let renamed = new.iter().zip(old).any(|(new, old)| new.name != old.name);
    if renamed {
        return new.to_vec();
    }
    let resized = new.iter().zip(old).map(|(new, old)| Container {
        resources: new.resources.clone(),
        resize_policy: new.resize_policy.clone(),
        ..old.clone()
    });
    resized.collect()
}

/// Validates a resize.
pub(super) fn validate(new: &Pod, old: &Pod, errors: &mut FieldErrors) {
    if let Some(detail) = why_never(old) {
        errors.forbidden(&FieldPath::root(""), detail);
        return;
    }
    let path = FieldPath::root("spec");
    let class = match old.status.qos_class.as_str() {
        "" => qos_class(&old.spec),
        class => class,
    };
    if class != qos_class(&new.spec) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        errors.invalid(&path, &new.status.qos_class, detail);
    }
    if !node_resizes(old) {
        let detail = "Pod running on node without support for resize";
        errors.forbidden(&path, detail);
    }
    let before = errors.count();
    validate_order(&new.spec, &old.spec, &path, errors);
    if errors.count() > before {
        return;
    }
    validate_pod_level(&new.spec, &old.spec, &path, errors);
    validate_containers(&new.spec, &old.spec, &path, errors);
    if errors.count() == before && !differs_only_in_resources(&new.spec, &old.spec) {
        errors.forbidden(&path, "only cpu and memory resources are mutable");
    }
}

fn why_never(pod: &Pod) -> Option<&'static str> {
    let system = pod.spec.os.as_ref();
    if pod.metadata.annotations.contains_key(MIRROR) {
        return Some("static pods cannot be resized");
    }
    let is_windows = system.is_some_and(|system| system.name == "windows");
    is_windows.then_some("windows pods cannot be resized")
}

/// Returns whether the node agent reports the resources of a container that runs, as those that resize do.
fn node_resizes(pod: &Pod) -> bool {
    let mut statuses = pod.status.container_statuses.iter();
    let running = statuses.find(|status| status.state.running.is_some());
    running.is_none_or(|status| status.resources.is_some())
}

fn validate_order(new: &PodSpec, old: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (field, new, old) in lists(new, old) {
        let path = path.field(field);
        if new.len() != old.len() {
            let detail = format!("{field} may not be added or removed on resize");
            errors.forbidden(&path, detail);
            continue;
        }
        for (index, (new, old)) in new.iter().zip(old).enumerate() {
            if new.name != old.name {
                let path = path.index(index);
                let detail = format!("{field} may not be renamed or reordered on resize");
                errors.forbidden(&path.field("name"), detail);
            }
        }
    }
}

fn lists<'s>(
    new: &'s PodSpec,
    old: &'s PodSpec,
) -> [(&'static str, &'s [Container], &'s [Container]); 2] {
    [
        ("containers", &new.containers, &old.containers),
        ("initContainers", &new.init_containers, &old.init_containers),
    ]
}

fn validate_pod_level(
    new: &PodSpec,
    old: &PodSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("resources");
    match (&new.resources, &old.resources) {
        (None, None) => {}
        (None, Some(_)) => errors.forbidden(&at, "pod-level resources cannot be removed"),
        (Some(new), old) => {
            let old = old.clone().unwrap_or_default();
            validate_kept(new, &old, "pod-level resource", &at, errors);
            if with_compute_of(&old, new) != old {
                let detail = "only cpu and memory resources are mutable at pod-level";
                errors.forbidden(path, detail);
            }
        }
    }
}

fn validate_containers(
    new: &PodSpec,
    old: &PodSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (field, new, old) in lists(new, old) {
        let list = path.field(field);
        for (index, (new, old)) in new.iter().zip(old).enumerate() {
            let at = list.index(index);
            let resources = at.field("resources");
            validate_kept(
                &new.resources,
                &old.resources,
                "resource",
                &resources,
                errors,
            );
            let is_init = field == "initContainers";
            let other = with_compute_of(&old.resources, &new.resources) != old.resources
                || new.resize_policy != old.resize_policy;
            match other {
                true if is_init => {
                    let detail =
                        "only cpu and memory resources for init or sidecar containers are mutable";
                    errors.forbidden(&at, detail);
                }
                true => errors.forbidden(path, "only cpu and memory resources are mutable"),
                false => {}
            }
            let restarts = |policy: &str| policy == "RestartContainer";
            let mut policies = new.resize_policy.iter();
            if is_init
                && new != old
                && new.restart_policy.as_deref() != Some("Always")
                && policies.any(|policy| restarts(&policy.restart_policy))
            {
                let detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
                errors.forbidden(&at, detail);
            }
        }
    }
}

/// Validates that no request or limit is removed.
fn validate_kept(
    new: &ResourceRequirements,
    old: &ResourceRequirements,
    what: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (field, new, old) in [
        ("requests", &new.requests, &old.requests),
        ("limits", &new.limits, &old.limits),
    ] {
        if old.keys().any(|name| !new.contains_key(name)) {
            let detail = format!("{what} {field} cannot be removed");
            errors.forbidden(&path.field(field), detail);
        }
    }
}

/// Returns the new requirements with the CPU and the memory of the old ones.
fn with_compute_of(old: &ResourceRequirements, new: &ResourceRequirements) -> ResourceRequirements {
    let keep = |new: &BTreeMap<String, Quantity>, old: &BTreeMap<String, Quantity>| {
        let mut amounts = new.clone();
        for name in MUTABLE {
            amounts.remove(name);
            let kept = old.get_key_value(name);
            amounts.extend(kept.map(|(name, amount)| (name.clone(), amount.clone())));
        }
        amounts
    };
    ResourceRequirements {
        requests: keep(&new.requests, &old.requests),
        limits: keep(&new.limits, &old.limits),
        ..new.clone()
    }
}

fn differs_only_in_resources(new: &PodSpec, old: &PodSpec) -> bool {
    let mut kept = new.clone();
    kept.resources.clone_from(&old.resources);
    let pairs = kept.containers.iter_mut().zip(&old.containers);
    let init = kept.init_containers.iter_mut().zip(&old.init_containers);
    for (kept, old) in pairs.chain(init) {
        kept.resources.clone_from(&old.resources);
    }
    kept == *old
}
