//! Security profiles that annotations name too, as they did before there were fields.

use std::collections::BTreeMap;

use setpoint_proto::core::{Container, PodSpec, SecurityContext};

use super::validate::lists;
use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::validation::field_path::FieldPath;

/// The annotation of a Pod's seccomp profile.
pub const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// The prefix, before a container's name, of the annotation with its seccomp profile.
pub const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// The prefix, before a container's name, of the annotation with its AppArmor profile.
pub const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
/// The prefix of the name of a profile on the node.
pub const LOCALHOST: &str = "localhost/";

type Annotations = BTreeMap<String, String>;

/// A profile as a field names it.
type Field<'f> = (&'f str, Option<&'f str>);

/// Finds profiles that a field and an annotation name differently.
pub fn validate(
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
        validate_seccomp(field, annotation, &path.field("seccompProfile"), errors);
    }
    let windows = spec.os.as_ref().is_some_and(|os| os.name == "windows");
    let app_armor = of_pod.and_then(|context| context.app_armor_profile.as_ref());
    let app_armor = app_armor.map(|field| (&*field.r#type, field.localhost_profile.as_deref()));
    for (list, field) in lists(spec) {
        let path = path.field(field);
        for (index, container) in list.iter().enumerate() {
            let path = path.index(index);
            let path = path.field("securityContext");
            validate_container(annotations, container, &path, errors);
            if !windows {
                let field = own_app_armor(container.security_context.as_ref()).or(app_armor);
                validate_app_armor(annotations, container, field, &path, errors);
            }
        }
    }
}

fn validate_container(
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
        validate_seccomp(field, annotation, &path.field("seccompProfile"), errors);
    }
}

fn own_app_armor(context: Option<&SecurityContext>) -> Option<Field<'_>> {
    let field = context?.app_armor_profile.as_ref()?;
    Some((&field.r#type, field.localhost_profile.as_deref()))
}

fn validate_app_armor(
    annotations: &Annotations,
    container: &Container,
    field: Option<Field<'_>>,
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

fn validate_seccomp(
    field: Field<'_>,
    annotation: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let defaults = &["runtime/default", "docker/default"];
    validate_match("seccomp", field, annotation, defaults, path, errors);
}

fn validate_match(
    what: &str,
    (r#type, profile): Field<'_>,
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
