//! Ephemeral containers: as containers, without the fields that a service needs.

use std::collections::BTreeSet;

use prost::Message as _;
use setpoint_proto::core::{Container, EphemeralContainer, EphemeralContainerCommon};

use super::container::{self, PodContext};
use super::defaults;
use super::validate::validate_image;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const CANNOT: &str = "cannot be set for an Ephemeral Container";

/// Returns the fields as those of a container: the messages have the same numbers.
fn as_container(common: &EphemeralContainerCommon) -> Container {
    Container::decode(common.encode_to_vec().as_slice()).unwrap_or_default()
}

/// Sets the defaults of a container.
pub fn fill_defaults(ephemeral: &mut EphemeralContainer) {
    let common = &mut ephemeral.ephemeral_container_common;
    let mut container = as_container(common);
    defaults::fill_container(&mut container);
    if let Ok(filled) = EphemeralContainerCommon::decode(container.encode_to_vec().as_slice()) {
        *common = filled;
    }
}

/// Validates the ephemeral containers of a Pod.
pub fn validate(pod: &PodContext<'_>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let spec = pod.spec;
    let others = spec.containers.iter().chain(&spec.init_containers);
    let others: BTreeSet<&str> = others.map(|container| container.name.as_str()).collect();
    let mut names = others.clone();
    for (index, ephemeral) in spec.ephemeral_containers.iter().enumerate() {
        let (path, common) = (path.index(index), &ephemeral.ephemeral_container_common);
        let as_container = as_container(common);
        container::validate(&as_container, pod, &path, errors);
        validate_image(&as_container, &path, errors);
        if !names.insert(common.name.as_str()) {
            errors.duplicate(&path.field("name"), &common.name);
        }
        let target = ephemeral.target_container_name.as_str();
        if !target.is_empty() && !others.contains(target) {
            errors.not_found(&path.field("targetContainerName"), target);
        }
        forbid_fields(common, &path, errors);
    }
}

fn forbid_fields(
    common: &EphemeralContainerCommon,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (field, is_set) in [
        ("ports", !common.ports.is_empty()),
        ("resources", common.resources != Default::default()),
        ("resizePolicy", !common.resize_policy.is_empty()),
        ("restartPolicy", common.restart_policy.is_some()),
        (
            "restartPolicyRules",
            !common.restart_policy_rules.is_empty(),
        ),
        ("livenessProbe", common.liveness_probe.is_some()),
        ("readinessProbe", common.readiness_probe.is_some()),
        ("startupProbe", common.startup_probe.is_some()),
        ("lifecycle", common.lifecycle.is_some()),
    ] {
        if is_set {
            errors.forbidden(&path.field(field), CANNOT);
        }
    }
    let mounts = path.field("volumeMounts");
    for (index, mount) in common.volume_mounts.iter().enumerate() {
        let path = mounts.index(index);
        for (field, text) in [
            ("subPath", &mount.sub_path),
            ("subPathExpr", &mount.sub_path_expr),
        ] {
            if !text.is_empty() {
                errors.forbidden(&path.field(field), CANNOT);
            }
        }
    }
}
