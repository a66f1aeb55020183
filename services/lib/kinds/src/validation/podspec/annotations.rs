//! Validation of the annotations of a Pod that Kubernetes reads, such as deprecated ones with security profiles.

use std::collections::BTreeMap;

use setpoint_proto::core::{Container, PodSpec, SecurityContext};

use super::paths;
use super::validate::for_each_container;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The annotation of a mirror Pod, the object of a static Pod of a node.
pub const MIRROR: &str = "kubernetes.io/config.mirror";
/// The annotation of a Pod's seccomp profile.
pub const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// The prefix, before a container's name, of the annotation with its seccomp profile.
pub const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// The prefix, before a container's name, of the annotation with its AppArmor profile.
pub const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
/// The prefix of the name of a profile on the node.
pub const LOCALHOST: &str = "localhost/";

/// Validates the annotations of a Pod.
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
    let mut containers = spec.containers.iter().chain(&spec.init_containers);
    containers.any(|container| container.name == name)
}

fn validate_app_armor(profile: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let known = ["", "runtime/default", "unconfined"].contains(&profile);
    if !known && !profile.starts_with(LOCALHOST) {
        let detail = format!("invalid AppArmor profile name: {profile:?}");
        errors.invalid(path, profile, detail);
    }
}

/// Returns whether the text is a 32-bit integer in canonical form.
fn is_cost(text: &str) -> bool {
    let canonical = text == "0" || text.starts_with(|first| matches!(first, '-' | '1'..='9'));
    canonical && text.parse::<i32>().is_ok()
}

fn validate_seccomp(profile: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match profile.strip_prefix(LOCALHOST) {
        Some(file) => paths::validate_descending(file, path, errors),
        None if ["runtime/default", "docker/default", "unconfined"].contains(&profile) => {}
        None => errors.invalid(path, profile, "must be a valid seccomp profile"),
    }
}

type Annotations = BTreeMap<String, String>;

/// The type and the name of a profile in a field.
type Profile<'f> = (&'f str, Option<&'f str>);

/// Validates that annotations with security profiles match the fields that have replaced them.
pub fn validate_profiles(
    annotations: &Annotations,
    spec: &PodSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let of_pod = spec.security_context.as_ref();
    let seccomp = of_pod.and_then(|context| context.seccomp_profile.as_ref());
    if let (Some(field), Some(annotation)) = (seccomp, annotations.get(SECCOMP)) {
        let path = path.field("securityContext");
        let field = (&*field.r#type, field.localhost_profile.as_deref());
        validate_seccomp_match(field, annotation, &path.field("seccompProfile"), errors);
    }
    let windows = spec.os.as_ref().is_some_and(|os| os.name == "windows");
    let app_armor = of_pod.and_then(|context| context.app_armor_profile.as_ref());
    let app_armor = app_armor.map(|field| (&*field.r#type, field.localhost_profile.as_deref()));
    for_each_container(spec, path, |container, _, path| {
        let path = path.field("securityContext");
        validate_container_seccomp(annotations, container, &path, errors);
        if !windows {
            let field = own_app_armor(container.security_context.as_ref()).or(app_armor);
            validate_app_armor_match(annotations, container, field, &path, errors);
        }
    });
}

fn validate_container_seccomp(
    annotations: &Annotations,
    container: &Container,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let context = container.security_context.as_ref();
    let seccomp = context.and_then(|context| context.seccomp_profile.as_ref());
    let annotation = annotations.get(&format!("{SECCOMP_CONTAINER}{}", container.name));
    if let (Some(field), Some(annotation)) = (seccomp, annotation) {
        let field = (&*field.r#type, field.localhost_profile.as_deref());
        validate_seccomp_match(field, annotation, &path.field("seccompProfile"), errors);
    }
}

fn own_app_armor(context: Option<&SecurityContext>) -> Option<Profile<'_>> {
    let field = context?.app_armor_profile.as_ref()?;
    Some((&field.r#type, field.localhost_profile.as_deref()))
}

fn validate_app_armor_match(
    annotations: &Annotations,
    container: &Container,
    field: Option<Profile<'_>>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let annotation = annotations.get(&format!("{APP_ARMOR}{}", container.name));
    if let (Some(field), Some(annotation)) = (field, annotation) {
        let path = path.field("appArmorProfile");
        let defaults = &["runtime/default"];
        validate_match("apparmor", field, annotation, defaults, &path, errors);
    }
}

fn validate_seccomp_match(
    field: Profile<'_>,
    annotation: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let defaults = &["runtime/default", "docker/default"];
    validate_match("seccomp", field, annotation, defaults, path, errors);
}

fn validate_match(
    what: &str,
    (r#type, profile): Profile<'_>,
    annotation: &str,
    defaults: &[&str],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let local = annotation.strip_prefix(LOCALHOST);
    let same_type = match r#type {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => defaults.contains(&annotation),
        "Localhost" => local.is_some(),
        _ => true,
    };
    if !same_type {
        let detail = format!("{what} type in annotation and field must match");
        errors.forbidden(&path.field("type"), detail);
    } else if r#type == "Localhost" && local != profile {
        let detail = format!("{what} profile in annotation and field must match");
        errors.forbidden(&path.field("localhostProfile"), detail);
    }
}
