//! Validation of the environment of a container.

use setpoint_model::names;
use setpoint_proto::core::{EnvFromSource, EnvVar, EnvVarSource, FileKeySelector};

use super::{downward, paths};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// The fields of the Pod that a variable may have.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const ONE_SOURCE: &str = "may not have more than one field specified at a time";

/// Validates environment variables.
pub fn validate(env: &[EnvVar], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, variable) in env.iter().enumerate() {
        let path = path.index(index);
        let name = path.field("name");
        match variable.name.as_str() {
            "" => errors.required(&name, ""),
            text => validate_name(text, &name, errors),
        }
        if let Some(source) = &variable.value_from {
            validate_source(source, &variable.value, &path.field("valueFrom"), errors);
        }
    }
}

fn validate_name(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if name.contains(|c: char| c == '=' || !c.is_ascii_graphic() && c != ' ') {
        let detail = "a valid environment variable name must consist only of printable ASCII \
            characters other than '='";
        errors.invalid(path, name, detail);
    }
}

fn validate_source(
    source: &EnvVarSource,
    value: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let sources = [
        source.field_ref.is_some(),
        source.resource_field_ref.is_some(),
        source.config_map_key_ref.is_some(),
        source.secret_key_ref.is_some(),
        source.file_key_ref.is_some(),
    ];
    if let Some(field) = &source.field_ref {
        downward::validate_field(field, FIELDS, &path.field("fieldRef"), errors);
    }
    if let Some(resource) = &source.resource_field_ref {
        let at = path.field("resourceFieldRef");
        downward::validate_resource(resource, &at, errors);
    }
    if let Some(key) = &source.config_map_key_ref {
        let name = &key.local_object_reference.name;
        validate_key(name, &key.key, &path.field("configMapKeyRef"), errors);
    }
    if let Some(key) = &source.secret_key_ref {
        let name = &key.local_object_reference.name;
        validate_key(name, &key.key, &path.field("secretKeyRef"), errors);
    }
    if let Some(key) = &source.file_key_ref {
        validate_file_key(key, &path.field("fileKeyRef"), errors);
    }
    match sources.into_iter().filter(|source| *source).count() {
        0 => {
            let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
                `secretKeyRef` or `fileKeyRef`";
            errors.invalid(path, "", detail);
        }
        _ if !value.is_empty() => {
            let detail = "may not be specified when `value` is not empty";
            errors.invalid(path, "", detail);
        }
        1 => {}
        _ => errors.invalid(path, "", ONE_SOURCE),
    }
}

fn validate_key(name: &str, key: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.check(&path.field("name"), name, names::validate_dns_subdomain);
    errors.check_required(&path.field("key"), key, names::validate_config_key);
}

fn validate_file_key(source: &FileKeySelector, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match source.key.as_str() {
        "" => errors.required(&path.field("key"), ""),
        key => validate_name(key, &path.field("key"), errors),
    }
    let at = path.field("volumeName");
    errors.check_required(&at, &source.volume_name, names::validate_dns_label);
    match source.path.as_str() {
        "" => errors.required(&path.field("path"), ""),
        file => paths::validate_no_backsteps(file, &path.field("path"), errors),
    }
}

/// Validates `envFrom`. Upstream names the list as the field.
pub fn validate_sources(sources: &[EnvFromSource], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, source) in sources.iter().enumerate() {
        let at = path.index(index);
        if !source.prefix.is_empty() {
            validate_name(&source.prefix, &at.field("prefix"), errors);
        }
        if let Some(map) = &source.config_map_ref {
            let name = &map.local_object_reference.name;
            let at = at.field("configMapRef");
            errors.check_required(&at.field("name"), name, names::validate_dns_subdomain);
        }
        if let Some(secret) = &source.secret_ref {
            let name = &secret.local_object_reference.name;
            let at = at.field("secretRef");
            errors.check_required(&at.field("name"), name, names::validate_dns_subdomain);
        }
        match (&source.config_map_ref, &source.secret_ref) {
            (None, None) => {
                let detail = "must specify one of: `configMapRef` or `secretRef`";
                errors.invalid(path, "", detail);
            }
            (Some(_), Some(_)) => errors.invalid(path, "", ONE_SOURCE),
            _ => {}
        }
    }
}
