//! Validation of the PersistentVolumeClaims that are created for the ephemeral volumes of a Pod.

use std::collections::BTreeSet;

use setpoint_model::names;
use setpoint_proto::core::{PersistentVolumeClaimTemplate, Volume, VolumeSource};
use setpoint_proto::meta::ObjectMeta;

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::{claim, metadata};

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
    claim::validate_spec(&template.spec, &path.field("spec"), errors);
}

/// Validates the metadata of the template: it may have only labels and annotations.
pub fn validate_metadata(meta: &ObjectMeta, path: &FieldPath<'_>, errors: &mut FieldErrors) {
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
