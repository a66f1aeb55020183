//! Validates a container.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_model::names;
use setpoint_proto::core::{Container, PodSpec, Probe, VolumeSource};

use super::{env, handler, mounts, ports, probe, resources, restart, security};
use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::validation::field_path::FieldPath;

const PULL: &[&str] = &["Always", "IfNotPresent", "Never"];
const MESSAGE: &[&str] = &["FallbackToLogsOnError", "File"];

/// The fields of a Pod that apply to all of its containers.
pub struct Surroundings<'s> {
    pub spec: &'s PodSpec,
    /// The volumes that may be mounted.
    pub volumes: &'s BTreeMap<&'s str, &'s VolumeSource>,
    /// The claims that may be named.
    pub claims: &'s BTreeSet<&'s str>,
}

/// Finds what is wrong with a container of either list.
pub fn validate(
    container: &Container,
    around: &Surroundings<'_>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    match container.name.as_str() {
        "" => errors.required(&path.field("name"), ""),
        name => errors.all_invalid(&path.field("name"), name, names::validate_dns_label(name)),
    }
    if container.image.is_empty() {
        errors.required(&path.field("image"), "");
    }
    let policy = path.field("terminationMessagePolicy");
    errors.one_of(&policy, &container.termination_message_policy, MESSAGE);
    ports::validate(&container.ports, &path.field("ports"), errors);
    env::validate(&container.env, &path.field("env"), errors);
    env::validate_sources(&container.env_from, &path.field("envFrom"), errors);
    mounts::validate(container, around.volumes, path, errors);
    validate_pull_policy(
        &container.image_pull_policy,
        &path.field("imagePullPolicy"),
        errors,
    );
    let at = path.field("resources");
    resources::validate(&container.resources, &at, errors);
    resources::validate_claims(&container.resources.claims, around.claims, &at, errors);
    resources::validate_resize(
        container,
        &around.spec.restart_policy,
        &path.field("resizePolicy"),
        errors,
    );
    let host_users = around.spec.host_users != Some(false);
    let at = path.field("securityContext");
    security::validate(container.security_context.as_ref(), host_users, &at, errors);
    restart::validate(container, path, errors);
}

/// Finds what is wrong with the probes and hooks of a container that goes on.
pub fn validate_life(
    container: &Container,
    spec: &PodSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if let Some(lifecycle) = &container.lifecycle {
        handler::validate_lifecycle(lifecycle, spec, &path.field("lifecycle"), errors);
    }
    for (probe, name) in probes(container) {
        probe::validate(probe, name, &path.field(name), errors);
    }
}

/// Probes and hooks are not for a container that others wait for.
pub fn forbid_life(container: &Container, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let hooks = container.lifecycle.as_ref().map(|_| "lifecycle");
    let probes = probes(container).map(|(_, name)| name);
    for field in hooks.into_iter().chain(probes) {
        let detail = "may not be set for init containers without restartPolicy=Always";
        errors.forbidden(&path.field(field), detail);
    }
    resources::forbid_restarts(container, &path.field("resizePolicy"), errors);
}

/// When an image is fetched.
pub fn validate_pull_policy(policy: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match policy {
        "" => errors.required(path, ""),
        policy => errors.one_of(path, policy, PULL),
    }
}

fn probes(container: &Container) -> impl Iterator<Item = (&Probe, &'static str)> {
    let probes = [
        (container.liveness_probe.as_ref(), "livenessProbe"),
        (container.readiness_probe.as_ref(), "readinessProbe"),
        (container.startup_probe.as_ref(), "startupProbe"),
    ];
    let given = |(probe, name): (Option<_>, _)| Some((probe?, name));
    probes.into_iter().filter_map(given)
}
