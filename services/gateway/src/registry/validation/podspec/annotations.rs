//! Annotations that mean something for a Pod.

use std::collections::BTreeMap;

use setpoint_proto::core::PodSpec;

use super::paths;
use super::profiles::{APP_ARMOR, LOCALHOST, SECCOMP, SECCOMP_CONTAINER};
use super::validate::lists;
use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::validation::field_path::FieldPath;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The annotation of a Pod that a node runs by itself, and whose mirror the object is.
pub const MIRROR: &str = "kubernetes.io/config.mirror";

/// Finds what is wrong with annotations that Kubernetes itself reads.
pub fn validate(
    annotations: &BTreeMap<String, String>,
    spec: &PodSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if let Some(value) = annotations.get(MIRROR)
        && spec.node_name.is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.invalid(&path.key(MIRROR), value, detail);
    }
    if let Some(cost) = annotations.get(DELETION_COST)
        && !is_cost(cost)
    {
        errors.invalid(&path.key(DELETION_COST), cost, "must be a 32bit integer");
    }
    for (key, profile) in annotations {
        if key == SECCOMP || key.starts_with(SECCOMP_CONTAINER) {
            validate_seccomp(profile, &path.name(key), errors);
        }
        if let Some(name) = key.strip_prefix(APP_ARMOR) {
            let path = path.key(key);
            if !has_container(spec, name) {
                errors.invalid(&path, name, "container not found");
            }
            validate_app_armor(profile, &path, errors);
        }
    }
}

fn has_container(spec: &PodSpec, name: &str) -> bool {
    lists(spec)
        .into_iter()
        .flat_map(|(list, _)| list)
        .any(|container| container.name == name)
}

fn validate_app_armor(profile: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let known = ["", "runtime/default", "unconfined"].contains(&profile);
    if !known && !profile.starts_with(LOCALHOST) {
        let detail = format!("invalid AppArmor profile name: {profile:?}");
        errors.invalid(path, profile, detail);
    }
}

/// A number of 32 bits, written in the one usual way.
fn is_cost(text: &str) -> bool {
    let usual = text == "0" || text.starts_with(|first| matches!(first, '-' | '1'..='9'));
    usual && text.parse::<i32>().is_ok()
}

fn validate_seccomp(profile: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match profile.strip_prefix(LOCALHOST) {
        Some(file) => paths::validate_descending(file, path, errors),
        None if ["runtime/default", "docker/default", "unconfined"].contains(&profile) => {}
        None => errors.invalid(path, profile, "must be a valid seccomp profile"),
    }
}
