//! PersistentVolume: the source and the volume mode are immutable. It is created with the finalizer that keeps it while
//! it is bound, which its controller removes.

pub mod secrets;
mod source;
mod warnings;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_model::volume::VOLUME_PROTECTION;
use setpoint_proto::core::{
    PersistentVolume, PersistentVolumeSpec, PersistentVolumeStatus, VolumeNodeAffinity,
};
use setpoint_proto::meta::Quantity;

use super::StoredKind;
use super::persistentvolumeclaim::{class_of, protect};
use crate::validation::changes;
use crate::validation::claim::{VOLUME_MODES, validate_access, validate_positive};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec::{canonicalise, validate_node_selector};
use crate::validation::set_default;
use crate::validation::warnings::Warnings;

const RECLAIM_POLICIES: &[&str] = &["Delete", "Recycle", "Retain"];
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";

impl StoredKind for PersistentVolume {
    const RETURNS_DELETED: bool = true;
    fn fill_defaults(&mut self) {
        set_default(&mut self.status.phase, "Pending");
        let spec = &mut self.spec;
        set_default(&mut spec.persistent_volume_reclaim_policy, "Retain");
        let mode = &mut spec.volume_mode;
        mode.get_or_insert_with(|| "Filesystem".into());
        canonicalise(&mut spec.capacity);
        source::fill_defaults(&mut spec.persistent_volume_source);
    }

    fn prepare_create(&mut self) {
        protect(&mut self.metadata, VOLUME_PROTECTION);
        self.status = PersistentVolumeStatus {
            phase: "Pending".into(),
            last_phase_transition_time: Some(self.metadata.creation_timestamp),
            ..Default::default()
        };
    }

    fn prepare_update(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
        let (new, old) = (&mut self.status, &old.status);
        set_default(&mut new.phase, "Pending");
        let since = &mut new.last_phase_transition_time;
        if new.phase == old.phase {
            *since = since.or(old.last_phase_transition_time);
        } else if since.is_none() || *since == old.last_phase_transition_time {
            *since = Some(Timestamp::now().into());
        }
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let (path, spec) = (FieldPath::root("spec"), &self.spec);
        validate_capacity(&spec.capacity, &path.field("capacity"), errors);
        validate_spec(spec, &self.metadata.name, &path, errors);
        validate_reclaiming(spec, &path, errors);
        let at = path.field("storageClassName");
        if !spec.storage_class_name.is_empty() {
            errors.check(&at, &spec.storage_class_name, names::validate_dns_subdomain);
        }
        let mode = spec.volume_mode.as_deref();
        errors.one_of(&path.field("volumeMode"), mode, VOLUME_MODES);
        let affinity = spec.node_affinity.as_ref();
        validate_affinity(affinity, &path.field("nodeAffinity"), errors);
        let annotations = &self.metadata.annotations;
        let source = &spec.persistent_volume_source;
        if annotations.contains_key(MOUNT_OPTIONS) && !source::has_mount_options(source) {
            let path = FieldPath::root("metadata");
            let path = path.field("annotations");
            let detail = "may not specify mount options for this volume type";
            errors.forbidden(&path.field(MOUNT_OPTIONS), detail);
        }
    }

    fn warn(&self, _old: Option<&Self>, warnings: &mut Warnings) {
        warnings::warn(self, warnings);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        let (path, new, old) = (FieldPath::root("spec"), &self.spec, &old.spec);
        let (source, was) = (&new.persistent_volume_source, &old.persistent_volume_source);
        if source::is_changed(source, was) {
            let changes = changes::between::<Self>(was, source);
            let detail =
                format!("spec.persistentvolumesource is immutable after creation{changes}");
            errors.forbidden(&path.field("persistentvolumesource"), detail);
        }
        // Upstream leaves `spec` out of the paths of these two fields.
        let at = FieldPath::root("volumeMode");
        errors.immutable(&at, &new.volume_mode, &old.volume_mode);
        if old.node_affinity.is_some() {
            let at = FieldPath::root("nodeAffinity");
            errors.immutable(&at, &new.node_affinity, &old.node_affinity);
        }
        let (new, old) = (
            &new.volume_attributes_class_name,
            &old.volume_attributes_class_name,
        );
        if old.is_some() && new.is_none() {
            let detail = "update from non-nil value to nil is forbidden";
            errors.forbidden(&path.field("volumeAttributesClassName"), detail);
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let spec = &self.spec;
        let or_unset = |text: &Option<String>| text.as_deref().unwrap_or("<unset>").into();
        Some(match column {
            "Capacity" => storage_of(&spec.capacity).into(),
            "Access Modes" => access_modes(&spec.access_modes).into(),
            "Reclaim Policy" => spec.persistent_volume_reclaim_policy.as_str().into(),
            "Status" if self.metadata.deletion_timestamp.is_some() => "Terminating".into(),
            "Status" => self.status.phase.as_str().into(),
            "Claim" => match &spec.claim_ref {
                Some(claim) => format!("{}/{}", claim.namespace, claim.name).into(),
                None => "".into(),
            },
            "StorageClass" => class_of(&self.metadata, Some(&spec.storage_class_name)).into(),
            "VolumeAttributesClass" => or_unset(&spec.volume_attributes_class_name),
            "Reason" => self.status.reason.as_str().into(),
            "VolumeMode" => or_unset(&spec.volume_mode),
            _ => return None,
        })
    }
}

/// Validates the spec of a volume that a VolumeAttachment has inline, which must be one of a CSI driver.
pub(super) fn validate_inline(
    spec: &PersistentVolumeSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (set, field) in [
        (spec.claim_ref.is_some(), "claimRef"),
        (!spec.capacity.is_empty(), "capacity"),
        (spec.node_affinity.is_some(), "nodeAffinity"),
        (!spec.storage_class_name.is_empty(), "storageClassName"),
    ] {
        if set {
            let detail = "may not be specified in the context of inline volumes";
            errors.forbidden(&path.field(field), detail);
        }
    }
    if spec.persistent_volume_source.csi.is_none() {
        let detail = "has to be specified in the context of inline volumes";
        errors.required(&path.field("csi"), detail);
    }
    validate_spec(spec, "", path, errors);
    let policy = spec.persistent_volume_reclaim_policy.as_str();
    if !["", "Retain"].contains(&policy) {
        let detail = "may only be Retain in the context of inline volumes";
        errors.forbidden(&path.field("persistentVolumeReclaimPolicy"), detail);
    }
    let mode = spec.volume_mode.as_deref();
    if mode.is_some_and(|mode| mode != "Filesystem") {
        let detail =
            "may not specify volumeMode other than Filesystem in the context of inline volumes";
        errors.forbidden(&path.field("volumeMode"), detail);
    }
}

/// Validates what volumes and inline volumes have in common.
fn validate_spec(
    spec: &PersistentVolumeSpec,
    volume: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("accessModes");
    if spec.access_modes.is_empty() {
        errors.required(&at, "");
    }
    validate_access(&spec.access_modes, &at, errors);
    let source = &spec.persistent_volume_source;
    source::validate(source, volume, path, errors);
    if source.local.is_some() && spec.node_affinity.is_none() {
        let detail = "Local volume requires node affinity";
        errors.required(&path.field("nodeAffinity"), detail);
    }
    let Some(class) = &spec.volume_attributes_class_name else {
        return;
    };
    let at = path.field("volumeAttributesClassName");
    match class.as_str() {
        "" => errors.required(&at, "an empty string is disallowed"),
        class => errors.check(&at, class, names::validate_dns_subdomain),
    }
    if source.csi.is_none() {
        let detail = "has to be specified when using volumeAttributesClassName";
        errors.required(&path.field("csi"), detail);
    }
}

fn validate_capacity(
    capacity: &BTreeMap<String, Quantity>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if capacity.is_empty() {
        errors.required(path, "");
    }
    if !capacity.contains_key("storage") || capacity.len() > 1 {
        let found: Vec<_> = capacity.keys().map(String::as_str).collect();
        errors.unsupported(path, &found.join(","), &["storage"]);
    }
    for (name, quantity) in capacity {
        validate_positive(quantity, &path.key(name), errors);
    }
}

fn validate_reclaiming(
    spec: &PersistentVolumeSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let (at, policy) = (
        path.field("persistentVolumeReclaimPolicy"),
        spec.persistent_volume_reclaim_policy.as_str(),
    );
    errors.one_of_or_empty(&at, policy, RECLAIM_POLICIES);
    let host = spec.persistent_volume_source.host_path.as_ref();
    let is_root =
        |path: &str| path.starts_with('/') && path.split('/').all(|part| ["", "."].contains(&part));
    if policy == "Recycle" && host.is_some_and(|host| is_root(&host.path)) {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.forbidden(&at, detail);
    }
}

fn validate_affinity(
    affinity: Option<&VolumeNodeAffinity>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("required");
    match affinity.map(|affinity| &affinity.required) {
        Some(None) => errors.required(&at, "must specify required node constraints"),
        Some(Some(selector)) => validate_node_selector(selector, &at, errors),
        None => {}
    }
}

/// Returns an amount of storage as a table cell.
pub(super) fn storage_of(amounts: &BTreeMap<String, Quantity>) -> &str {
    amounts.get("storage").map_or("0", |amount| &amount.string)
}

/// Returns the short forms of access modes, in upstream's order.
pub(super) fn access_modes(modes: &[String]) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let set = known
        .iter()
        .filter(|(mode, _)| modes.iter().any(|one| one == mode));
    set.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_last_change_of_the_phase_is_recorded() {
        let mut old = PersistentVolume::default();
        old.metadata.creation_timestamp = Timestamp::from_second(1_000).unwrap().into();
        old.fill_defaults();
        old.prepare_create();
        let created = old.metadata.creation_timestamp;
        assert_eq!(old.status.phase, "Pending");
        assert_eq!(old.status.last_phase_transition_time, Some(created));
        let reported = |phase: &str, since| {
            let mut new = old.clone();
            new.status.phase = phase.into();
            new.status.last_phase_transition_time = since;
            new.prepare_status_update(&old);
            new.status.last_phase_transition_time
        };
        assert_eq!(reported("Pending", None), Some(created));
        let given = Some(Timestamp::from_second(2_000).unwrap().into());
        assert_eq!(reported("Bound", given), given);
        for since in [None, Some(created)] {
            assert!(![None, Some(created)].contains(&reported("Bound", since)));
        }
    }

    #[test]
    fn volumes_and_claims_are_created_with_their_finalizers_once() {
        let mut volume = PersistentVolume::default();
        let mut claim = setpoint_proto::core::PersistentVolumeClaim::default();
        for _ in 0..2 {
            volume.prepare_create();
            claim.prepare_create();
        }
        let expected = ["kubernetes.io/pv-protection"];
        assert_eq!(volume.metadata.finalizers, expected);
        let expected = ["kubernetes.io/pvc-protection"];
        assert_eq!(claim.metadata.finalizers, expected);
    }

    #[test]
    fn access_modes_have_short_forms() {
        let modes = ["ReadWriteMany", "ReadWriteOnce", "ReadWriteOnce"];
        assert_eq!(access_modes(&modes.map(String::from)), "RWO,RWX");
    }
}
