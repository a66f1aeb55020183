//! PersistentVolumeClaim: the spec is immutable, except the size and the attributes class of a bound claim; the default
//! StorageClass and the finalizer that keeps it while Pods use it, which its controller removes, are set at creation.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_model::quantity::Amount;
use setpoint_model::resource_name::is_native;
use setpoint_model::volume::{CLAIM_PROTECTION, CLASS};
use setpoint_proto::core::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeClaimStatus,
    TypedLocalObjectReference, TypedObjectReference,
};
use setpoint_proto::meta::{ObjectMeta, Quantity};

use super::StoredKind;
use super::persistentvolume::{access_modes, storage_of};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec::canonicalise;
use crate::validation::warnings::Warnings;
use crate::validation::{changes, claim, set_default};

const RESIZE_STATES: &[&str] = &[
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

impl StoredKind for PersistentVolumeClaim {
    const RETURNS_DELETED: bool = true;
    fn fill_defaults(&mut self) {
        set_default(&mut self.status.phase, "Pending");
        canonicalise(&mut self.status.capacity);
        canonicalise(&mut self.status.allocated_resources);
        claim::fill_defaults(&mut self.spec);
    }

    fn prepare_create(&mut self) {
        protect(&mut self.metadata, CLAIM_PROTECTION);
        self.status = PersistentVolumeClaimStatus {
            phase: "Pending".into(),
            ..Default::default()
        };
        complete_data(&mut self.spec, None);
    }

    fn prepare_update(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
        complete_data(&mut self.spec, Some(&old.spec));
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
    }

    fn validate(&self, errors: &mut FieldErrors) {
        claim::validate_spec(&self.spec, &FieldPath::root("spec"), errors);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        validate_spec_change(self, old, errors);
        let path = FieldPath::root("volumeMode");
        errors.immutable(&path, &self.spec.volume_mode, &old.spec.volume_mode);
        validate_shrinking(self, old, errors);
        validate_attributes_change(self, old, errors);
    }

    fn warn(&self, _old: Option<&Self>, warnings: &mut Warnings) {
        if self.metadata.annotations.contains_key(CLASS) {
            let path = FieldPath::root("metadata");
            let path = path.field("annotations");
            warnings.about(&path.key(CLASS), claim::OLD_CLASS);
        }
        claim::warn_of_spec(&self.spec, &FieldPath::root("spec"), warnings);
    }

    fn validate_status_update(&self, _old: &Self, errors: &mut FieldErrors) {
        let (path, status) = (FieldPath::root("status"), &self.status);
        validate_amounts(&status.capacity, &path.field("capacity"), errors);
        let at = path.field("allocatedResources");
        for name in status.allocated_resources.keys() {
            validate_resource(name, &at, errors);
        }
        validate_amounts(&status.allocated_resources, &at, errors);
        let at = path.field("allocatedResourceStatuses");
        for (name, state) in &status.allocated_resource_statuses {
            validate_resource(name, &at, errors);
            errors.one_of(&at, state.as_str(), RESIZE_STATES);
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let (spec, status) = (&self.spec, &self.status);
        let or_unset = |text: &Option<String>| text.as_deref().unwrap_or("<unset>").into();
        let is_bound = !spec.volume_name.is_empty();
        Some(match column {
            "Status" if self.metadata.deletion_timestamp.is_some() => "Terminating".into(),
            "Status" => status.phase.as_str().into(),
            "Volume" => spec.volume_name.as_str().into(),
            "Capacity" if is_bound => storage_of(&status.capacity).into(),
            "Access Modes" if is_bound => access_modes(&status.access_modes).into(),
            "Capacity" | "Access Modes" => "".into(),
            "StorageClass" => class_of(&self.metadata, spec.storage_class_name.as_deref()).into(),
            "VolumeAttributesClass" => or_unset(&spec.volume_attributes_class_name),
            "VolumeMode" => or_unset(&spec.volume_mode),
            _ => return None,
        })
    }
}

/// Adds a finalizer (upstream: the admission plugin StorageObjectInUseProtection).
pub(super) fn protect(meta: &mut ObjectMeta, finalizer: &str) {
    if !meta.finalizers.iter().any(|own| own == finalizer) {
        meta.finalizers.push(finalizer.to_owned());
    }
}

/// Returns the class of a claim or volume: that of the old annotation, if it is set.
pub fn class_of<'c>(meta: &'c ObjectMeta, class: Option<&'c str>) -> &'c str {
    let annotation = meta.annotations.get(CLASS).map(String::as_str);
    annotation.or(class).unwrap_or_default()
}

/// Makes `dataSource` and `dataSourceRef` equal, and removes sources that Kubernetes does not accept: other kinds than
/// claims and snapshots in `dataSource`, and those of other namespaces, a feature that is disabled by default.
fn complete_data(new: &mut PersistentVolumeClaimSpec, old: Option<&PersistentVolumeClaimSpec>) {
    let had_reference = old.is_some_and(|old| old.data_source_ref.is_some());
    let had_source = had_reference || old.is_some_and(|old| old.data_source.is_some());
    let is_elsewhere = |source: &TypedObjectReference| {
        let namespace = source.namespace.as_deref();
        namespace.is_some_and(|namespace| !namespace.is_empty())
    };
    if !had_reference && new.data_source_ref.as_ref().is_some_and(is_elsewhere) {
        new.data_source_ref = None;
    }
    let is_volume = new.data_source.as_ref().is_some_and(is_volume);
    if !had_source && new.data_source_ref.is_none() && !is_volume {
        new.data_source = None;
    }
    match (&new.data_source, &new.data_source_ref) {
        (Some(source), None) => {
            new.data_source_ref = Some(TypedObjectReference {
                api_group: source.api_group.clone(),
                kind: source.kind.clone(),
                name: source.name.clone(),
                namespace: None,
            });
        }
        (None, Some(source)) if !is_elsewhere(source) => {
            new.data_source = Some(TypedLocalObjectReference {
                api_group: source.api_group.clone(),
                kind: source.kind.clone(),
                name: source.name.clone(),
            });
        }
        _ => {}
    }
}

fn is_volume(source: &TypedLocalObjectReference) -> bool {
    let group = source.api_group.as_deref().unwrap_or_default();
    [
        ("", "PersistentVolumeClaim"),
        ("snapshot.storage.k8s.io", "VolumeSnapshot"),
    ]
    .contains(&(group, source.kind.as_str()))
}

/// Validates that only fields change that may: the name of the volume and the class, once, and size and attributes
/// class of a bound claim.
fn validate_spec_change(
    new: &PersistentVolumeClaim,
    old: &PersistentVolumeClaim,
    errors: &mut FieldErrors,
) {
    let (mut spec, mut was) = (new.spec.clone(), old.spec.clone());
    if was.volume_name.is_empty() {
        was.volume_name.clone_from(&spec.volume_name);
    }
    let annotation = |claim: &PersistentVolumeClaim| claim.metadata.annotations.get(CLASS).cloned();
    let (now, before) = (annotation(new), annotation(old));
    let replaces_annotation = before.is_some()
        && was.storage_class_name.is_none()
        && spec.storage_class_name == before
        && (now.is_none() || now == before);
    if !replaces_annotation && now != before {
        let path = FieldPath::root("metadata");
        let path = path.field("annotations");
        let at = path.field(CLASS);
        errors.invalid(&at, now.unwrap_or_default(), "field is immutable");
    }
    let is_first_class =
        was.storage_class_name.is_none() && (before.is_none() || spec.storage_class_name == before);
    if replaces_annotation || is_first_class {
        was.storage_class_name.clone_from(&spec.storage_class_name);
    }
    if new.status.phase == "Bound" {
        let size = was.resources.requests.get("storage").cloned();
        if !spec.resources.requests.is_empty() {
            let size = size.unwrap_or_default();
            spec.resources.requests.insert("storage".into(), size);
        }
        let class = &was.volume_attributes_class_name;
        spec.volume_attributes_class_name.clone_from(class);
    }
    // The source may be older than `dataSourceRef`.
    complete_data(&mut was, Some(&old.spec));
    if spec != was {
        let changes = changes::between::<PersistentVolumeClaim>(&was, &spec);
        let detail = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims{changes}"
        );
        errors.forbidden(&FieldPath::root("spec"), detail);
    }
}

/// Returns the size that a claim requests.
pub fn requested(claim: &PersistentVolumeClaim) -> Amount {
    storage(&claim.spec.resources.requests)
}

fn storage(amounts: &BTreeMap<String, Quantity>) -> Amount {
    let amount = amounts
        .get("storage")
        .map(|size| Amount::parse(&size.string));
    amount.and_then(Result::ok).unwrap_or(Amount::ZERO)
}

/// Validates that a smaller size is still greater than that of the volume.
fn validate_shrinking(
    new: &PersistentVolumeClaim,
    old: &PersistentVolumeClaim,
    errors: &mut FieldErrors,
) {
    let (size, actual) = (requested(new), storage(&old.status.capacity));
    if size < requested(old) && size <= actual {
        let path = FieldPath::root("spec");
        let path = path.field("resources");
        let path = path.field("requests");
        let detail = "field can not be less than status.capacity";
        errors.forbidden(&path.field("storage"), detail);
    }
}

fn validate_attributes_change(
    new: &PersistentVolumeClaim,
    old: &PersistentVolumeClaim,
    errors: &mut FieldErrors,
) {
    let (now, was) = (
        &new.spec.volume_attributes_class_name,
        &old.spec.volume_attributes_class_name,
    );
    let current = &old.status.current_volume_attributes_class_name;
    if now == was || current.is_none() {
        return;
    }
    let what = match now.as_deref() {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return,
    };
    let path = FieldPath::root("spec");
    let detail = format!(
        "update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    );
    errors.forbidden(&path.field("volumeAttributesClassName"), detail);
}

fn validate_amounts(
    amounts: &BTreeMap<String, Quantity>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (name, quantity) in amounts {
        let at = path.key(name);
        match Amount::parse(&quantity.string) {
            Err(error) => errors.invalid(&at, quantity, error),
            Ok(amount) if amount < Amount::ZERO => {
                errors.invalid(&at, quantity, "must be a valid resource quantity");
            }
            Ok(_) => {}
        }
    }
}

/// Validates the name of a resource that is resized: `storage`, or one of another domain.
fn validate_resource(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let wrong = names::validate_qualified_name(name);
    if wrong.is_empty() && is_native(name) && name != "storage" {
        errors.unsupported(path, name, &["storage"]);
    }
    errors.all_invalid(path, name, wrong);
}
