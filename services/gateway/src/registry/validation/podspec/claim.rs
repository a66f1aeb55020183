//! Validation of the PersistentVolumeClaims that are created for the ephemeral volumes of a Pod.

use std::collections::BTreeSet;

use setpoint_model::names;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::{
    PersistentVolumeClaimSpec, PersistentVolumeClaimTemplate, Volume, VolumeSource,
};
use setpoint_proto::meta::ObjectMeta;

use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::validation::field_path::FieldPath;
use crate::registry::validation::{label_selector, metadata};

const ACCESS_MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];

/// Returns the names of the claims that are created for a Pod.
pub fn created_names(volumes: &[Volume], pod: &str) -> BTreeSet<String> {
    let ephemeral = |volume: &&Volume| volume.volume_source.ephemeral.is_some();
    let name = |volume: &Volume| format!("{pod}-{}", volume.name);
    volumes.iter().filter(ephemeral).map(name).collect()
}

/// Validates the name of the claim that is created for a volume of the Pod `pod`.
pub fn validate_name(volume: &Volume, pod: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if volume.volume_source.ephemeral.is_none() || volume.name.is_empty() || pod.is_empty() {
        return;
    }
    let name = format!("{pod}-{}", volume.name);
    for wrong in names::validate_dns_subdomain(&name) {
        let detail = format!("PVC name {name:?}: {wrong}");
        errors.invalid(&path.field("name"), &volume.name, detail);
    }
}

/// Forbids a reference to a claim that is created for an ephemeral volume of the same Pod.
pub fn forbid_reference(
    source: &VolumeSource,
    created_names: &BTreeSet<String>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if let Some(claim) = &source.persistent_volume_claim
        && created_names.contains(&claim.claim_name)
    {
        let path = path.field("persistentVolumeClaim");
        let detail = "must not reference a PVC that gets created for an ephemeral volume";
        errors.invalid(&path.field("claimName"), &claim.claim_name, detail);
    }
}

/// Validates the template of a claim.
pub fn validate(
    template: &PersistentVolumeClaimTemplate,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    validate_metadata(&template.metadata, &path.field("metadata"), errors);
    let (spec, path) = (&template.spec, path.field("spec"));
    validate_access(&spec.access_modes, &path.field("accessModes"), errors);
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
    validate_data(spec, &path, errors);
}

/// Validates the metadata of the template: it may have only labels and annotations.
fn validate_metadata(meta: &ObjectMeta, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    metadata::validate_annotations(&meta.annotations, &path.field("annotations"), errors);
    metadata::validate_labels(&meta.labels, &path.field("labels"), errors);
    for (given, field) in [
        (!meta.name.is_empty(), "name"),
        (!meta.generate_name.is_empty(), "generateName"),
        (!meta.namespace.is_empty(), "namespace"),
        (!meta.self_link.is_empty(), "selfLink"),
        (!meta.uid.is_empty(), "uID"),
        (!meta.resource_version.is_empty(), "resourceVersion"),
        (meta.generation != 0, "generation"),
        (
            meta.creation_timestamp != Default::default(),
            "creationTimestamp",
        ),
        (meta.deletion_timestamp.is_some(), "deletionTimestamp"),
        (
            meta.deletion_grace_period_seconds.is_some(),
            "deletionGracePeriodSeconds",
        ),
        (!meta.owner_references.is_empty(), "ownerReferences"),
        (!meta.finalizers.is_empty(), "finalizers"),
        (!meta.managed_fields.is_empty(), "managedFields"),
    ] {
        if given {
            errors.forbidden(&path.field(field), "cannot be set");
        }
    }
}

fn validate_access(modes: &[String], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if modes.is_empty() {
        errors.required(path, "at least 1 access mode is required");
    }
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
    match Amount::parse(&size.string) {
        Err(error) => errors.invalid(&at, size, error),
        Ok(amount) if amount <= Amount::ZERO => {
            errors.invalid(&at, size, "must be greater than zero");
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
