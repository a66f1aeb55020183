//! Validation of containers.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_model::names;
use setpoint_proto::core::{Container, ContainerRestartRule, PodSpec, Probe, VolumeSource};

use super::{env, handler, mounts, ports, resources, security};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];
const MESSAGE_POLICIES: &[&str] = &["FallbackToLogsOnError", "File"];
const RESTART_POLICIES: &[&str] = &["Always", "Never", "OnFailure"];
const RESTART_ACTIONS: &[&str] = &["Restart", "RestartAllContainers"];
const EXIT_CODE_OPERATORS: &[&str] = &["In", "NotIn"];
const RESTART_RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;

/// The parts of a Pod on which the validation of its containers depends.
pub struct PodContext<'s> {
    pub spec: &'s PodSpec,
    /// The volumes that may be mounted.
    pub volumes: &'s BTreeMap<&'s str, &'s VolumeSource>,
    /// The claims that may be used.
    pub claims: &'s BTreeSet<&'s str>,
}

/// Validates a container or an init container.
pub fn validate(
    container: &Container,
    pod: &PodContext<'_>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let name = path.field("name");
    errors.check_required(&name, &container.name, names::validate_dns_label);
    errors.not_empty(&path.field("image"), &container.image);
    let policy = path.field("terminationMessagePolicy");
    errors.one_of_or_empty(
        &policy,
        &container.termination_message_policy,
        MESSAGE_POLICIES,
    );
    ports::validate(&container.ports, &path.field("ports"), errors);
    env::validate(&container.env, &path.field("env"), errors);
    env::validate_sources(&container.env_from, &path.field("envFrom"), errors);
    mounts::validate(container, pod.volumes, path, errors);
    validate_pull_policy(
        &container.image_pull_policy,
        &path.field("imagePullPolicy"),
        errors,
    );
    let at = path.field("resources");
    resources::validate(&container.resources, &at, errors);
    resources::validate_claims(&container.resources.claims, pod.claims, &at, errors);
    resources::validate_resize(
        container,
        &pod.spec.restart_policy,
        &path.field("resizePolicy"),
        errors,
    );
    let host_users = pod.spec.host_users != Some(false);
    let at = path.field("securityContext");
    security::validate(container.security_context.as_ref(), host_users, &at, errors);
    validate_restart_policy(container, path, errors);
}

/// Validates the probes and hooks of a container that is kept running.
pub fn validate_lifecycle_and_probes(
    container: &Container,
    spec: &PodSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if let Some(lifecycle) = &container.lifecycle {
        handler::validate_lifecycle(lifecycle, spec, &path.field("lifecycle"), errors);
    }
    for (probe, name) in probes(container) {
        validate_probe(probe, name, &path.field(name), errors);
    }
}

/// Forbids probes and hooks of an init container that is not a sidecar.
pub fn forbid_lifecycle_and_probes(
    container: &Container,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let hooks = container.lifecycle.as_ref().map(|_| "lifecycle");
    let probes = probes(container).map(|(_, name)| name);
    for field in hooks.into_iter().chain(probes) {
        let detail = "may not be set for init containers without restartPolicy=Always";
        errors.forbidden(&path.field(field), detail);
    }
    resources::forbid_restarts(container, &path.field("resizePolicy"), errors);
}

/// Validates an image pull policy.
pub fn validate_pull_policy(policy: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match policy {
        "" => errors.required(path, ""),
        policy => errors.one_of_or_empty(path, policy, PULL_POLICIES),
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

/// Validates the probe in the field `name`.
fn validate_probe(probe: &Probe, name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    handler::validate_probe(&probe.handler, path, errors);
    for (number, field) in [
        (probe.initial_delay_seconds, "initialDelaySeconds"),
        (probe.timeout_seconds, "timeoutSeconds"),
        (probe.period_seconds, "periodSeconds"),
        (probe.success_threshold, "successThreshold"),
        (probe.failure_threshold, "failureThreshold"),
    ] {
        errors.non_negative(&path.field(field), number);
    }
    validate_probe_grace(
        probe,
        name,
        &path.field("terminationGracePeriodSeconds"),
        errors,
    );
    // The other probes end with their first success.
    if name != "readinessProbe" && probe.success_threshold != 1 {
        let at = path.field("successThreshold");
        errors.invalid(&at, probe.success_threshold, "must be 1");
    }
}

fn validate_probe_grace(probe: &Probe, name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let Some(grace) = probe.termination_grace_period_seconds else {
        return;
    };
    if grace <= 0 {
        errors.invalid(path, grace, "must be greater than 0");
    }
    if name == "readinessProbe" {
        errors.invalid(path, grace, "must not be set for readinessProbes");
    }
}

/// Validates the restart policy of a container and its rules.
fn validate_restart_policy(container: &Container, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("restartPolicy");
    match container.restart_policy.as_deref() {
        None if !container.restart_policy_rules.is_empty() => {
            let detail = "must specify restartPolicy when restart rules are used";
            errors.required(&at, detail);
        }
        policy => errors.one_of(&at, policy, RESTART_POLICIES),
    }
    let rules = path.field("restartPolicyRules");
    errors.at_most(
        &rules,
        container.restart_policy_rules.len(),
        RESTART_RULES_MAX,
    );
    for (index, rule) in container.restart_policy_rules.iter().enumerate() {
        validate_restart_rule(rule, &rules.index(index), errors);
    }
}

fn validate_restart_rule(
    rule: &ContainerRestartRule,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    errors.one_of(&path.field("action"), rule.action.as_str(), RESTART_ACTIONS);
    let at = path.field("exitCodes");
    let Some(codes) = &rule.exit_codes else {
        errors.required(&at, "must be specified");
        return;
    };
    errors.one_of(
        &at.field("operator"),
        codes.operator.as_str(),
        EXIT_CODE_OPERATORS,
    );
    errors.at_most(&at.field("values"), codes.values.len(), EXIT_CODES_MAX);
}
