//! Validation of the downward API: fields and resources of a Pod in files and environment variables.

use setpoint_model::names;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::{DownwardApiVolumeFile, ObjectFieldSelector, ResourceFieldSelector};

use super::paths;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// The fields that a file may have.
const FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
/// The fields that any use of the downward API may have.
const KNOWN: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.host",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.phase",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
/// The divisors of resources in bytes.
const BYTES: &[&str] = &[
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];

/// Validates a file with a field or a resource.
pub fn validate_file(file: &DownwardApiVolumeFile, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("path");
    errors.not_empty(&at, &file.path);
    paths::validate_not_reserved(&file.path, &at, errors);
    match (&file.field_ref, &file.resource_field_ref) {
        (None, None) => {
            let detail = "one of fieldRef and resourceFieldRef is required";
            errors.required(path, detail);
        }
        (Some(field), resource) => {
            validate_field(field, FIELDS, &path.field("fieldRef"), errors);
            if resource.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.invalid(path, "resource", detail);
            }
        }
        (None, Some(resource)) => {
            let at = path.field("resourceFieldRef");
            match resource.container_name.as_str() {
                "" => errors.required(&at.field("containerName"), ""),
                _ => validate_resource(resource, &at, errors),
            }
        }
    }
    paths::validate_mode(file.mode, &path.field("mode"), errors);
}

/// Validates a field reference; `supported` are the fields that may be used here.
pub fn validate_field(
    selector: &ObjectFieldSelector,
    supported: &[&str],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let (at, text) = (path.field("fieldPath"), selector.field_path.as_str());
    if text.is_empty() {
        errors.required(&at, "");
        return;
    }
    let (field, key) = match text
        .strip_suffix("']")
        .and_then(|text| text.split_once("['"))
    {
        Some((field, key)) => (field, Some(key)),
        None => (text, None),
    };
    if let Some(reason) = conversion_error(&selector.api_version, field, key) {
        let detail = format!("error converting fieldPath: {reason}");
        errors.invalid(&at, text, detail);
        return;
    }
    // The former name of the field.
    let field = if field == "spec.host" {
        "spec.nodeName"
    } else {
        field
    };
    match (field, key) {
        ("metadata.annotations", Some(key)) => {
            let wrong = names::validate_qualified_name(&key.to_lowercase());
            errors.all_invalid(path, key, wrong);
        }
        ("metadata.labels", Some(key)) => {
            errors.check(path, key, names::validate_qualified_name);
        }
        (field, None) => errors.one_of(&at, field, supported),
        _ => {}
    }
}

/// Returns why the reference cannot be converted to a field of a Pod.
fn conversion_error(version: &str, field: &str, key: Option<&str>) -> Option<String> {
    let with_keys = ["metadata.annotations", "metadata.labels"].contains(&field);
    match key {
        _ if version != "v1" => Some(format!("unsupported pod version: {version}")),
        Some(key) if !with_keys => Some(format!(
            "field label does not support subscript: {field}['{key}']"
        )),
        None if !KNOWN.contains(&field) => Some(format!("field label not supported: {field}")),
        _ => None,
    }
}

/// Validates a resource reference.
pub fn validate_resource(
    selector: &ResourceFieldSelector,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let resource = selector.resource.as_str();
    let pages = ["limits.hugepages-", "requests.hugepages-"];
    let pages = pages.iter().any(|prefix| resource.starts_with(prefix));
    let at = path.field("resource");
    if resource.is_empty() {
        errors.required(&at, "");
    } else if !pages {
        errors.one_of(&at, resource, RESOURCES);
    }
    let Ok(divisor) = Amount::parse(&selector.divisor.string) else {
        return;
    };
    let units = match resource.split_once('.') {
        Some((_, "cpu")) => &["1m", "1"],
        _ if pages || RESOURCES.contains(&resource) => BYTES,
        _ => return,
    };
    if divisor != Amount::ZERO && !units.contains(&divisor.canonical().as_str()) {
        let detail = format!("only divisor's values {} are supported", units.join(", "));
        errors.invalid(&path.field("divisor"), resource, detail);
    }
}
