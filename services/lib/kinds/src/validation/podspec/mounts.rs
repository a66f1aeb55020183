//! Validation of volume mounts and volume devices.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_proto::core::{Container, VolumeDevice, VolumeMount, VolumeSource};

use super::paths;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const PROPAGATIONS: &[&str] = &["Bidirectional", "HostToContainer", "None"];
const READ_ONLY: &[&str] = &["Disabled", "Enabled", "IfPossible"];

type Volumes<'v> = BTreeMap<&'v str, &'v VolumeSource>;

/// Validates the mounts and devices of a container.
pub fn validate(
    container: &Container,
    volumes: &Volumes<'_>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    validate_mounts(container, volumes, &path.field("volumeMounts"), errors);
    validate_devices(container, volumes, &path.field("volumeDevices"), errors);
}

fn validate_mounts(
    container: &Container,
    volumes: &Volumes<'_>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let devices = &container.volume_devices;
    let taken_names: BTreeSet<_> = devices.iter().map(|device| &device.name).collect();
    let taken_paths: BTreeSet<_> = devices.iter().map(|device| &device.device_path).collect();
    let mut paths = BTreeSet::new();
    for (index, mount) in container.volume_mounts.iter().enumerate() {
        let entry = path.index(index);
        let (name, at) = (entry.field("name"), entry.field("mountPath"));
        errors.not_empty(&name, &mount.name);
        if !volumes.contains_key(mount.name.as_str()) {
            errors.not_found(&name, &mount.name);
        }
        errors.not_empty(&at, &mount.mount_path);
        if !paths.insert(mount.mount_path.as_str()) {
            errors.invalid(&at, &mount.mount_path, "must be unique");
        }
        if taken_names.contains(&mount.name) {
            let detail = "must not already exist in volumeDevices";
            errors.invalid(&name, &mount.name, detail);
        }
        if taken_paths.contains(&mount.mount_path) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.invalid(&at, &mount.mount_path, detail);
        }
        validate_sub_path(mount, &entry, path, errors);
        validate_mount_options(mount, container, path, errors);
    }
}

/// Validates the sub-path of a mount. Upstream names the list as the field of most errors.
fn validate_sub_path(
    mount: &VolumeMount,
    entry: &FieldPath<'_>,
    list: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let (sub_path, expr) = (mount.sub_path.as_str(), mount.sub_path_expr.as_str());
    paths::validate_descending(sub_path, &list.field("subPath"), errors);
    paths::validate_descending(expr, &list.field("subPathExpr"), errors);
    if !sub_path.is_empty() && !expr.is_empty() {
        let detail = "subPathExpr and subPath are mutually exclusive";
        errors.invalid(&entry.field("subPathExpr"), expr, detail);
    }
}

fn validate_mount_options(
    mount: &VolumeMount,
    container: &Container,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let (at, propagation) = (
        path.field("mountPropagation"),
        mount.mount_propagation.as_deref(),
    );
    let context = container.security_context.as_ref();
    let privileged = context.is_some_and(|context| context.privileged == Some(true));
    match propagation {
        Some("Bidirectional") if !privileged => {
            let detail =
                "Bidirectional mount propagation is available only to privileged containers";
            errors.forbidden(&at, detail);
        }
        other => errors.one_of(&at, other, PROPAGATIONS),
    }
    let at = path.field("recursiveReadOnly");
    match mount.recursive_read_only.as_deref() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !mount.read_only {
                errors.forbidden(&at, "may only be specified when readOnly is true");
            }
            if propagation.is_some_and(|propagation| propagation != "None") {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.forbidden(&at, detail);
            }
        }
        Some(other) => errors.unsupported(&at, other, READ_ONLY),
    }
}

fn validate_devices(
    container: &Container,
    volumes: &Volumes<'_>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let mounts = &container.volume_mounts;
    let taken_names: BTreeSet<_> = mounts.iter().map(|mount| &mount.name).collect();
    let taken_paths: BTreeSet<_> = mounts.iter().map(|mount| &mount.mount_path).collect();
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for (index, device) in container.volume_devices.iter().enumerate() {
        let entry = path.index(index);
        let (name, at) = (entry.field("name"), entry.field("devicePath"));
        if device.name.is_empty() {
            errors.required(&name, "");
        } else if !names.insert(&device.name) {
            errors.invalid(&name, &device.name, "must be unique");
        }
        validate_device_source(device, volumes, &name, errors);
        errors.not_empty(&at, &device.device_path);
        if !paths.insert(&device.device_path) {
            errors.invalid(&at, &device.device_path, "must be unique");
        }
        if paths::has_backsteps(&device.device_path) {
            errors.invalid(&at, &device.device_path, "can not contain backsteps ('..')");
        }
        if taken_names.contains(&device.name) {
            let detail = "must not already exist in volumeMounts";
            errors.invalid(&name, &device.name, detail);
        }
        if taken_paths.contains(&device.device_path) {
            let detail = "must not already exist as a path in volumeMounts";
            errors.invalid(&at, &device.device_path, detail);
        }
    }
}

fn validate_device_source(
    device: &VolumeDevice,
    volumes: &Volumes<'_>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let Some(source) = volumes.get(device.name.as_str()) else {
        errors.not_found(path, &device.name);
        return;
    };
    if source.persistent_volume_claim.is_none() && source.ephemeral.is_none() {
        let detail =
            "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
        errors.invalid(path, &device.name, detail);
    }
}
