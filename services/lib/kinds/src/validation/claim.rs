//! Defaults and validation of the spec of a PersistentVolumeClaim, which may be in a template.

use setpoint_model::names;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::PersistentVolumeClaimSpec;
use setpoint_proto::meta::Quantity;

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::label_selector;
use crate::validation::podspec::canonicalise;
use crate::validation::warnings::{Warnings, warn_of_fraction};

/// The warning of the annotation with the class.
pub const OLD_CLASS: &str = r#"deprecated since v1.8; use "storageClassName" attribute instead"#;
const ACCESS_MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
/// The forms in which a volume is given to a container.
pub const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];

/// Sets the defaults of the spec of a claim.
pub fn fill_defaults(spec: &mut PersistentVolumeClaimSpec) {
    let mode = &mut spec.volume_mode;
    mode.get_or_insert_with(|| "Filesystem".into());
    canonicalise(&mut spec.resources.limits);
    canonicalise(&mut spec.resources.requests);
}

/// Validates the spec of a claim.
pub fn validate_spec(
    spec: &PersistentVolumeClaimSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("accessModes");
    if spec.access_modes.is_empty() {
        errors.required(&at, "at least 1 access mode is required");
    }
    validate_access(&spec.access_modes, &at, errors);
    label_selector::validate(spec.selector.as_ref(), &path.field("selector"), errors);
    validate_size(spec, &path.field("resources"), errors);
    let mode = spec.volume_mode.as_deref();
    errors.one_of(&path.field("volumeMode"), mode, VOLUME_MODES);
    for (class, field) in [
        (&spec.storage_class_name, "storageClassName"),
        (
            &spec.volume_attributes_class_name,
            "volumeAttributesClassName",
        ),
    ] {
        if let Some(name) = class.as_deref().filter(|name| !name.is_empty()) {
            errors.check(&path.field(field), name, names::validate_dns_subdomain);
        }
    }
    validate_data(spec, path, errors);
}

/// Warns of sizes with a fraction of a byte.
pub fn warn_of_spec(
    spec: &PersistentVolumeClaimSpec,
    path: &FieldPath<'_>,
    warnings: &mut Warnings,
) {
    let path = path.field("resources");
    for (field, amounts) in [
        ("requests", &spec.resources.requests),
        ("limits", &spec.resources.limits),
    ] {
        let at = path.field(field);
        warn_of_fraction(amounts.get("storage"), &at.key("storage"), warnings);
    }
}

/// Validates access modes.
pub fn validate_access(modes: &[String], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for mode in modes {
        errors.one_of(path, mode.as_str(), ACCESS_MODES);
    }
    let (pod_only, others): (Vec<&str>, Vec<&str>) = modes
        .iter()
        .map(String::as_str)
        .filter(|mode| ACCESS_MODES.contains(mode))
        .partition(|mode| *mode == "ReadWriteOncePod");
    if !pod_only.is_empty() && !others.is_empty() {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.forbidden(path, detail);
    }
}

fn validate_size(spec: &PersistentVolumeClaimSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.key("storage");
    let Some(size) = spec.resources.requests.get("storage") else {
        errors.required(&at, "");
        return;
    };
    validate_positive(size, &at, errors);
}

/// Validates that an amount is greater than zero.
pub fn validate_positive(quantity: &Quantity, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match Amount::parse(&quantity.string) {
        Err(error) => errors.invalid(path, quantity, error),
        Ok(amount) if amount <= Amount::ZERO => {
            errors.invalid(path, quantity, "must be greater than zero");
        }
        Ok(_) => {}
    }
}

/// Validates `dataSource` and `dataSourceRef`, which must be equal if both are set.
fn validate_data(spec: &PersistentVolumeClaimSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let old = spec.data_source.as_ref();
    let old = old.map(|old| (old.api_group.as_deref(), &*old.kind, &*old.name));
    let new = spec.data_source_ref.as_ref();
    let new = new.map(|new| (new.api_group.as_deref(), &*new.kind, &*new.name));
    for (source, field) in [(old, "dataSource"), (new, "dataSourceRef")] {
        let Some((group, kind, name)) = source else {
            continue;
        };
        let path = path.field(field);
        errors.not_empty(&path.field("name"), name);
        errors.not_empty(&path.field("kind"), kind);
        match group.unwrap_or_default() {
            "" if kind != "PersistentVolumeClaim" => {
                let detail =
                    "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
                errors.invalid(&path, kind, detail);
            }
            "" => {}
            group => {
                errors.check(
                    &path.field("apiGroup"),
                    group,
                    names::validate_dns_subdomain,
                );
            }
        }
    }
    if old.is_some() && new.is_some() && old != new {
        let source = path.field("dataSource").to_string();
        errors.invalid(path, source, "must match dataSourceRef");
    }
}
