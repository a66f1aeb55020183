//! Validation of the status of a Pod, and the fields that a write of the status keeps.

use std::collections::{BTreeMap, VecDeque};

use setpoint_model::names;
use setpoint_proto::core::{Container, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus};

use super::devices;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::ip;
use crate::validation::podspec;
use crate::validation::warnings::{Warnings, warn_of_address};

/// Condition types that are accepted although they are not qualified names.
const SYSTEM: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];
/// The terminal phases.
const TERMINAL: [&str; 2] = ["Succeeded", "Failed"];

/// Restores from the old status the fields that the new one leaves out, and those that never change.
pub(super) fn keep_unset(new: &mut PodStatus, old: &PodStatus) {
    if new.qos_class.is_empty() {
        new.qos_class.clone_from(&old.qos_class);
    }
    if new.observed_generation == 0 {
        new.observed_generation = old.observed_generation;
    }
    // There may be several conditions of a type.
    let mut generations: BTreeMap<&str, VecDeque<i64>> = BTreeMap::new();
    for condition in &old.conditions {
        let of_type = generations.entry(&condition.r#type).or_default();
        of_type.push_back(condition.observed_generation);
    }
    for condition in &mut new.conditions {
        let of_type = generations.get_mut(condition.r#type.as_str());
        let before = of_type.and_then(VecDeque::pop_front).unwrap_or_default();
        if condition.observed_generation == 0 {
            condition.observed_generation = before;
        }
    }
}

/// Warns of the addresses.
pub(super) fn warn(status: &PodStatus, warnings: &mut Warnings) {
    let path = FieldPath::root("status");
    let at = path.field("podIPs");
    for (index, one) in status.pod_ips.iter().enumerate() {
        warn_of_address(&one.ip, &at.index(index).field("ip"), warnings);
    }
    let at = path.field("hostIPs");
    for (index, one) in status.host_ips.iter().enumerate() {
        warn_of_address(&one.ip, &at.index(index).field("ip"), warnings);
    }
}

/// Validates a change of the status.
pub(super) fn validate_update(new: &Pod, old: &Pod, errors: &mut FieldErrors) {
    let path = FieldPath::root("status");
    let (status, was) = (&new.status, &old.status);
    validate_phase(status, was, &path.field("phase"), errors);
    validate_conditions(&status.conditions, &path.field("conditions"), errors);
    validate_nomination(new, old, &path.field("nominatedNodeName"), errors);
    if status.observed_generation < 0 {
        let at = path.field("observedGeneration");
        errors.invalid(
            &at,
            status.observed_generation,
            "must be a non-negative integer",
        );
    }
    errors.immutable(&path.field("qosClass"), &status.qos_class, &was.qos_class);
    validate_containers(new, old, &path, errors);
    devices::validate(new, &path, errors);
    let (ips, were) = (status.pod_ips.iter(), was.pod_ips.iter());
    let (ips, were) = (ips.map(|ip| ip.ip.as_str()), were.map(|ip| ip.ip.as_str()));
    validate_ips(
        &ips.collect::<Vec<_>>(),
        &were.collect::<Vec<_>>(),
        &path.field("podIPs"),
        errors,
    );
    validate_host_ips(status, was, &path.field("hostIPs"), errors);
}

/// Validates that a terminal phase stays. Kubernetes has no such rule; controllers that count Pods rely on it here.
fn validate_phase(
    new: &PodStatus,
    old: &PodStatus,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if TERMINAL.contains(&old.phase.as_str()) && new.phase != old.phase {
        let detail = format!("may not leave the terminal phase {:?}", old.phase);
        errors.invalid(path, &new.phase, detail);
    }
}

fn validate_conditions(
    conditions: &[PodCondition],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let generation = condition.observed_generation;
        if generation < 0 {
            let detail = "must be a non-negative integer";
            errors.invalid(&path.field("observedGeneration"), generation, detail);
        }
        let r#type = condition.r#type.as_str();
        if !SYSTEM.contains(&r#type) {
            errors.check(&path.field("Type"), r#type, names::validate_qualified_name);
        }
    }
}

fn validate_nomination(new: &Pod, old: &Pod, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let nominated = new.status.nominated_node_name.as_str();
    if nominated.is_empty() || nominated == old.status.nominated_node_name {
        return;
    }
    errors.check(path, nominated, names::validate_dns_subdomain);
    if !old.spec.node_name.is_empty() {
        let detail = "may not be set on pods that are already bound to a node";
        errors.forbidden(path, detail);
    }
}

fn validate_containers(new: &Pod, old: &Pod, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (spec, new, old) = (&old.spec, &new.status, &old.status);
    let lists = [
        (
            &new.container_statuses,
            &old.container_statuses,
            &*spec.containers,
            "containerStatuses",
        ),
        (
            &new.init_container_statuses,
            &old.init_container_statuses,
            &spec.init_containers,
            "initContainerStatuses",
        ),
        // None of these is restarted.
        (
            &new.ephemeral_container_statuses,
            &old.ephemeral_container_statuses,
            &[],
            "ephemeralContainerStatuses",
        ),
    ];
    let windows = spec.os.as_ref().is_some_and(|os| os.name == "windows");
    for (new, old, containers, field) in lists {
        let path = path.field(field);
        validate_transitions(new, old, (spec, containers), &path, errors);
        for (index, status) in new.iter().enumerate() {
            validate_user(status, windows, &path.index(index), errors);
        }
    }
}

/// Validates that a terminated container that may not be restarted stays terminated.
fn validate_transitions(
    new: &[ContainerStatus],
    old: &[ContainerStatus],
    (spec, containers): (&PodSpec, &[Container]),
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let mut rules = spec
        .init_containers
        .iter()
        .chain(&spec.containers)
        .flat_map(|container| &container.restart_policy_rules);
    if !containers.is_empty() && rules.any(|rule| rule.action == "RestartAllContainers") {
        return;
    }
    let is_not_terminated = |status: &ContainerStatus| status.state.terminated.is_none();
    let new: BTreeMap<_, _> = new.iter().rev().map(|new| (&new.name, new)).collect();
    for (index, status) in old.iter().enumerate() {
        let Some(terminated) = &status.state.terminated else {
            continue;
        };
        let container = containers
            .iter()
            .find(|container| container.name == status.name);
        let may =
            container.is_some_and(|container| may_restart(container, spec, terminated.exit_code));
        if !may
            && new
                .get(&status.name)
                .is_some_and(|new| is_not_terminated(new))
        {
            let detail = "may not be transitioned to non-terminated state";
            errors.forbidden(&path.index(index).field("state"), detail);
        }
    }
}

/// Returns whether a container may be restarted: by its own rules, else its own policy, else that of its Pod.
fn may_restart(container: &Container, spec: &PodSpec, exit_code: i32) -> bool {
    let own = container.restart_policy.as_deref();
    let ruled = own.is_some()
        && container.restart_policy_rules.iter().any(|rule| {
            let codes = rule.exit_codes.as_ref();
            let matches = codes
                .is_some_and(|codes| codes.values.contains(&exit_code) == (codes.operator == "In"));
            matches && rule.action == "Restart"
        });
    let policy = own.unwrap_or(&spec.restart_policy);
    ruled
        || match policy {
            "Never" => false,
            "OnFailure" => exit_code != 0,
            _ => true,
        }
}

fn validate_user(
    status: &ContainerStatus,
    windows: bool,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let user = status.user.as_ref().and_then(|user| user.linux.as_ref());
    let Some(user) = user else {
        return;
    };
    let path = path.field("user");
    let path = path.field("linux");
    if windows {
        errors.forbidden(&path, "cannot be set for a windows pod");
        return;
    }
    podspec::validate_id(Some(user.uid), &path.field("uid"), errors);
    podspec::validate_id(Some(user.gid), &path.field("gid"), errors);
    let groups = path.field("supplementalGroups");
    for (index, group) in user.supplemental_groups.iter().enumerate() {
        podspec::validate_id(Some(*group), &groups.index(index), errors);
    }
}

fn validate_ips(new: &[&str], old: &[&str], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, ip) in new.iter().enumerate() {
        if !old.contains(ip) {
            ip::validate(ip, &path.index(index), errors);
        }
    }
    if !ip::are_of_different_families(new.iter().copied()) {
        let detail = "may specify no more than one IP for each IP family";
        errors.invalid(path, new, detail);
    }
}

fn validate_host_ips(
    new: &PodStatus,
    old: &PodStatus,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let ips: Vec<_> = new.host_ips.iter().map(|ip| ip.ip.as_str()).collect();
    let were: Vec<_> = old.host_ips.iter().map(|ip| ip.ip.as_str()).collect();
    if let Some(first) = ips.first()
        && *first != new.host_ip
    {
        let at = path.index(0);
        errors.invalid(&at.field("ip"), first, "must be equal to `hostIP`");
    }
    validate_ips(&ips, &were, path, errors);
}
