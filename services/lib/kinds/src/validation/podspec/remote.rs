//! Defaults and validation of the in-tree volume types of storage systems.

use setpoint_model::names;
use setpoint_proto::core::{
    AzureDiskVolumeSource, FcVolumeSource, FlexVolumeSource, FlockerVolumeSource,
    LocalObjectReference, QuobyteVolumeSource, StorageOsVolumeSource, VolumeSource,
};

use super::{iscsi, paths};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::set_default;

const CACHING: &[&str] = &["None", "ReadOnly", "ReadWrite"];
const AZURE_KINDS: &[&str] = &["Dedicated", "Managed", "Shared"];
const MANAGED_DISKS: &[&str] = &[
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
];
const BLOB_DISKS: &[&str] =
    &["https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"];
const TENANT_MAX: usize = 64;
const BYTE_RANGE: std::ops::RangeInclusive<i32> = 0..=255;
const REGISTRY_FORM: &str = "must be a host:port pair or multiple pairs separated by commas";

/// Sets the defaults of a volume source.
pub fn fill_defaults(source: &mut VolumeSource) {
    if let Some(volume) = &mut source.iscsi {
        set_default(&mut volume.iscsi_interface, "default");
    }
    if let Some(volume) = &mut source.rbd {
        set_default(&mut volume.pool, "rbd");
        set_default(&mut volume.user, "admin");
        set_default(&mut volume.keyring, "/etc/ceph/keyring");
    }
    if let Some(disk) = &mut source.azure_disk {
        fill_azure_disk(disk);
    }
    if let Some(volume) = &mut source.scale_io {
        set_default(&mut volume.storage_mode, "ThinProvisioned");
        set_default(&mut volume.fs_type, "xfs");
    }
}

/// Sets the defaults of an Azure disk.
pub fn fill_azure_disk(disk: &mut AzureDiskVolumeSource) {
    disk.caching_mode.get_or_insert_with(|| "ReadWrite".into());
    disk.fs_type.get_or_insert_with(|| "ext4".into());
    disk.read_only.get_or_insert(false);
    disk.kind.get_or_insert_with(|| "Shared".into());
}

/// Validates the first source that is set, in upstream's order.
pub fn validate(source: &VolumeSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(git) = &source.git_repo {
        errors.not_empty(&path.field("repository"), &git.repository);
        paths::validate_descending(&git.directory, &path.field("directory"), errors);
    } else if let Some(disk) = &source.gce_persistent_disk {
        errors.not_empty(&path.field("pdName"), &disk.pd_name);
        validate_partition(disk.partition, path, errors);
    } else if let Some(disk) = &source.aws_elastic_block_store {
        errors.not_empty(&path.field("volumeID"), &disk.volume_id);
        validate_partition(disk.partition, path, errors);
    } else if let Some(volume) = &source.iscsi {
        iscsi::validate(volume, path, errors);
    } else if let Some(volume) = &source.glusterfs {
        errors.not_empty(&path.field("endpoints"), &volume.endpoints);
        errors.not_empty(&path.field("path"), &volume.path);
    } else if let Some(volume) = &source.flocker {
        validate_flocker(volume, path, errors);
    } else if let Some(volume) = &source.rbd {
        require_any(&volume.monitors, &path.field("monitors"), errors);
        errors.not_empty(&path.field("image"), &volume.image);
    } else if let Some(disk) = &source.cinder {
        errors.not_empty(&path.field("volumeID"), &disk.volume_id);
        validate_secret(disk.secret_ref.as_ref(), path, errors);
    } else if let Some(volume) = &source.cephfs {
        require_any(&volume.monitors, &path.field("monitors"), errors);
    } else if let Some(volume) = &source.quobyte {
        validate_quobyte(volume, path, errors);
    } else if let Some(volume) = &source.fc {
        validate_fc(volume, path, errors);
    } else if let Some(volume) = &source.flex_volume {
        validate_flex(volume, path, errors);
    } else {
        validate_other(source, path, errors);
    }
}

fn validate_other(source: &VolumeSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(volume) = &source.azure_file {
        errors.not_empty(&path.field("secretName"), &volume.secret_name);
        errors.not_empty(&path.field("shareName"), &volume.share_name);
    } else if let Some(disk) = &source.vsphere_volume {
        errors.not_empty(&path.field("volumePath"), &disk.volume_path);
    } else if let Some(disk) = &source.photon_persistent_disk {
        errors.not_empty(&path.field("pdID"), &disk.pd_id);
    } else if let Some(volume) = &source.portworx_volume {
        errors.not_empty(&path.field("volumeID"), &volume.volume_id);
    } else if let Some(disk) = &source.azure_disk {
        validate_azure(disk, path, errors);
    } else if let Some(disk) = &source.storageos {
        validate_storage_os(disk, path, errors);
    } else if let Some(volume) = &source.scale_io {
        errors.not_empty(&path.field("gateway"), &volume.gateway);
        errors.not_empty(&path.field("system"), &volume.system);
        errors.not_empty(&path.field("volumeName"), &volume.volume_name);
    }
}

fn require_any(texts: &[String], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if texts.is_empty() {
        errors.required(path, "");
    }
}

fn validate_secret(
    secret: Option<&LocalObjectReference>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if let Some(secret) = secret {
        let path = path.field("secretRef");
        errors.not_empty(&path.field("name"), &secret.name);
    }
}

/// Validates a partition; 0 is a disk without partitions, although the message excludes it.
fn validate_partition(partition: i32, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if !BYTE_RANGE.contains(&partition) {
        let detail = "must be between 1 and 255, inclusive";
        errors.invalid(&path.field("partition"), partition, detail);
    }
}

fn validate_azure(disk: &AzureDiskVolumeSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (uri, at) = (disk.disk_uri.as_str(), path.field("diskURI"));
    errors.not_empty(&path.field("diskName"), &disk.disk_name);
    errors.not_empty(&at, uri);
    let caching = disk.caching_mode.as_deref();
    errors.one_of(&path.field("cachingMode"), caching, CACHING);
    let kind = disk.kind.as_deref();
    errors.one_of(&path.field("kind"), kind, AZURE_KINDS);
    match kind {
        Some("Managed") if !uri.starts_with("/subscriptions/") => {
            errors.unsupported(&at, uri, MANAGED_DISKS);
        }
        Some(kind) if kind != "Managed" && !uri.starts_with("https://") => {
            errors.unsupported(&at, uri, BLOB_DISKS);
        }
        _ => {}
    }
}

fn validate_storage_os(
    disk: &StorageOsVolumeSource,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    errors.not_empty(&path.field("volumeName"), &disk.volume_name);
    for (name, field) in [
        (&disk.volume_name, "volumeName"),
        (&disk.volume_namespace, "volumeNamespace"),
    ] {
        if !name.is_empty() {
            errors.check(&path.field(field), name, names::validate_dns_label);
        }
    }
    validate_secret(disk.secret_ref.as_ref(), path, errors);
}

/// Validates a logical unit number.
pub fn validate_lun(lun: i32, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if !BYTE_RANGE.contains(&lun) {
        let detail = "must be between 0 and 255, inclusive";
        errors.invalid(&path.field("lun"), lun, detail);
    }
}

fn validate_fc(volume: &FcVolumeSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("targetWWNs");
    match (volume.target_ww_ns.is_empty(), volume.wwids.is_empty()) {
        (true, true) => {
            let detail = "must specify either targetWWNs or wwids, but not both";
            errors.required(&at, detail);
        }
        (false, false) => {
            let detail = "targetWWNs and wwids can not be specified simultaneously";
            errors.invalid(&at, &volume.target_ww_ns, detail);
        }
        _ => {}
    }
    if !volume.target_ww_ns.is_empty() {
        match volume.lun {
            None => {
                let detail = "lun is required if targetWWNs is specified";
                errors.required(&path.field("lun"), detail);
            }
            Some(lun) => validate_lun(lun, path, errors),
        }
    }
}

fn validate_quobyte(volume: &QuobyteVolumeSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("registry");
    if volume.registry.is_empty() {
        errors.required(&at, REGISTRY_FORM);
    } else if volume.tenant.len() > TENANT_MAX {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.required(&path.field("tenant"), detail);
    } else {
        let wrong = volume
            .registry
            .split(',')
            .filter(|pair| !is_host_and_port(pair));
        for _ in wrong {
            errors.invalid(&at, &volume.registry, REGISTRY_FORM);
        }
    }
    errors.not_empty(&path.field("volume"), &volume.volume);
}

/// Returns whether the text is `host:port`, where an IPv6 address is in brackets.
fn is_host_and_port(pair: &str) -> bool {
    let (host, port) = match pair.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => match rest.strip_prefix(':') {
            Some(port) => (host, port),
            None => return false,
        },
        None => match pair.split_once(':') {
            Some((host, port)) => (host, port),
            None => return false,
        },
    };
    !host.contains(['[', ']']) && !port.contains(['[', ']', ':'])
}

fn validate_flocker(volume: &FlockerVolumeSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match (
        volume.dataset_name.is_empty(),
        volume.dataset_uuid.is_empty(),
    ) {
        (true, true) => errors.required(path, "one of datasetName and datasetUUID is required"),
        (false, false) => {
            let detail = "datasetName and datasetUUID can not be specified simultaneously";
            errors.invalid(path, "resource", detail);
        }
        _ => {}
    }
    if volume.dataset_name.contains('/') {
        let at = path.field("datasetName");
        errors.invalid(&at, &volume.dataset_name, "must not contain '/'");
    }
}

fn validate_flex(volume: &FlexVolumeSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.not_empty(&path.field("driver"), &volume.driver);
    let at = path.field("options");
    for key in volume.options.keys() {
        let domain = key.split_once('/').map_or(&**key, |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if [".kubernetes.io", ".k8s.io"]
            .iter()
            .any(|own| domain.ends_with(own))
        {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.invalid(&at.key(key), key, detail);
        }
    }
}
