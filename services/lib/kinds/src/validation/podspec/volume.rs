//! Validation of the volumes of a Pod.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_model::names;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::{CsiVolumeSource, KeyToPath, Volume, VolumeSource};

use super::{claim, container, downward, iscsi, paths, projected, remote};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// The longest name of a CSI driver.
const DRIVER_MAX: usize = 63;
const HOST_PATHS: &[&str] = &[
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

/// Validates the volumes of the Pod `pod` (`None` for a template), and returns the valid ones, which may be mounted.
pub fn validate<'v>(
    volumes: &'v [Volume],
    pod: Option<&str>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) -> BTreeMap<&'v str, &'v VolumeSource> {
    let mut valid = BTreeMap::new();
    let created_names = pod.map_or_else(BTreeSet::new, |pod| claim::created_names(volumes, pod));
    for (index, volume) in volumes.iter().enumerate() {
        let path = path.index(index);
        let before = errors.count();
        validate_source(&volume.volume_source, &path, errors);
        if let Some(pod) = pod {
            claim::validate_name(volume, pod, &path, errors);
        }
        iscsi::validate_initiator(volume, &path, errors);
        let (at, name) = (path.field("name"), volume.name.as_str());
        errors.check_required(&at, name, names::validate_dns_label);
        if valid.contains_key(name) {
            errors.duplicate(&at, name);
        }
        if errors.count() == before {
            valid.insert(name, &volume.volume_source);
        }
        claim::forbid_reference(&volume.volume_source, &created_names, &path, errors);
    }
    valid
}

/// Validates the first source that is set, and forbids the others.
fn validate_source(source: &VolumeSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let given = types(source);
    let mut given = given.into_iter().filter(|(_, given)| *given);
    let Some((first, _)) = given.next() else {
        errors.required(path, "must specify a volume type");
        return;
    };
    // Upstream's field names in errors are not always those of the API.
    let field = match first {
        "gcePersistentDisk" => "persistentDisk",
        other => other,
    };
    validate_type(source, first, &path.field(field), errors);
    for (field, _) in given {
        let detail = "may not specify more than 1 volume type";
        let field = match field {
            "cephfs" => "cephFS",
            "downwardAPI" => "downwarAPI",
            other => other,
        };
        errors.forbidden(&path.field(field), detail);
    }
}

/// Returns the types of sources in upstream's order, and whether each is set.
fn types(source: &VolumeSource) -> [(&'static str, bool); 30] {
    [
        ("emptyDir", source.empty_dir.is_some()),
        ("hostPath", source.host_path.is_some()),
        ("gitRepo", source.git_repo.is_some()),
        ("gcePersistentDisk", source.gce_persistent_disk.is_some()),
        (
            "awsElasticBlockStore",
            source.aws_elastic_block_store.is_some(),
        ),
        ("secret", source.secret.is_some()),
        ("nfs", source.nfs.is_some()),
        ("iscsi", source.iscsi.is_some()),
        ("glusterfs", source.glusterfs.is_some()),
        ("flocker", source.flocker.is_some()),
        (
            "persistentVolumeClaim",
            source.persistent_volume_claim.is_some(),
        ),
        ("rbd", source.rbd.is_some()),
        ("cinder", source.cinder.is_some()),
        ("cephfs", source.cephfs.is_some()),
        ("quobyte", source.quobyte.is_some()),
        ("downwardAPI", source.downward_api.is_some()),
        ("fc", source.fc.is_some()),
        ("flexVolume", source.flex_volume.is_some()),
        ("configMap", source.config_map.is_some()),
        ("azureFile", source.azure_file.is_some()),
        ("vsphereVolume", source.vsphere_volume.is_some()),
        (
            "photonPersistentDisk",
            source.photon_persistent_disk.is_some(),
        ),
        ("portworxVolume", source.portworx_volume.is_some()),
        ("azureDisk", source.azure_disk.is_some()),
        ("storageos", source.storageos.is_some()),
        ("projected", source.projected.is_some()),
        ("scaleIO", source.scale_io.is_some()),
        ("csi", source.csi.is_some()),
        ("ephemeral", source.ephemeral.is_some()),
        ("image", source.image.is_some()),
    ]
}

/// Validates the source of this type.
pub fn validate_type(
    source: &VolumeSource,
    r#type: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    match r#type {
        "emptyDir" | "hostPath" | "nfs" | "image" => validate_local(source, path, errors),
        "secret" | "configMap" | "downwardAPI" => validate_file_source(source, path, errors),
        "persistentVolumeClaim" | "csi" | "ephemeral" => validate_storage(source, path, errors),
        "projected" => {
            if let Some(projected) = &source.projected {
                projected::validate(projected, path, errors);
            }
        }
        // The node agent mounts none of the others; it reports that when a Pod uses one.
        _ => remote::validate(source, path, errors),
    }
}

fn validate_local(source: &VolumeSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let limit = source.empty_dir.as_ref();
    let limit = limit.and_then(|directory| directory.size_limit.as_ref());
    let limit = limit.and_then(|limit| Amount::parse(&limit.string).ok());
    if limit.is_some_and(|limit| limit < Amount::ZERO) {
        let detail = "SizeLimit field must be a valid resource quantity";
        errors.forbidden(&path.field("sizeLimit"), detail);
    } else if let Some(host) = &source.host_path {
        let at = path.field("path");
        if host.path.is_empty() {
            errors.required(&at, "");
            return;
        }
        paths::validate_no_backsteps(&host.path, &at, errors);
        errors.one_of(&path.field("type"), host.r#type.as_deref(), HOST_PATHS);
    } else if let Some(nfs) = &source.nfs {
        errors.not_empty(&path.field("server"), &nfs.server);
        let at = path.field("path");
        errors.not_empty(&at, &nfs.path);
        if !nfs.path.starts_with('/') {
            errors.invalid(&at, &nfs.path, "must be an absolute path");
        }
    } else if let Some(image) = &source.image {
        let at = path.field("pullPolicy");
        container::validate_pull_policy(&image.pull_policy, &at, errors);
    }
}

fn validate_file_source(source: &VolumeSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mode = path.field("defaultMode");
    let items = path.field("items");
    if let Some(secret) = &source.secret {
        errors.not_empty(&path.field("secretName"), &secret.secret_name);
        paths::validate_mode(secret.default_mode, &mode, errors);
        validate_items(&secret.items, &items, errors);
    } else if let Some(map) = &source.config_map {
        let name = &map.local_object_reference.name;
        errors.not_empty(&path.field("name"), name);
        paths::validate_mode(map.default_mode, &mode, errors);
        validate_items(&map.items, &items, errors);
    } else if let Some(downward) = &source.downward_api {
        paths::validate_mode(downward.default_mode, &mode, errors);
        for file in &downward.items {
            // Upstream names the volume, not the file, as the field.
            downward::validate_file(file, path, errors);
        }
    }
}

fn validate_storage(source: &VolumeSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(claim) = &source.persistent_volume_claim {
        errors.not_empty(&path.field("claimName"), &claim.claim_name);
    } else if let Some(csi) = &source.csi {
        validate_csi(csi, path, errors);
    } else if let Some(ephemeral) = &source.ephemeral {
        let at = path.field("volumeClaimTemplate");
        match &ephemeral.volume_claim_template {
            None => errors.required(&at, ""),
            Some(template) => claim::validate(template, &at, errors),
        }
    }
}

fn validate_csi(csi: &CsiVolumeSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_driver(&csi.driver, &path.field("driver"), errors);
    if let Some(secret) = &csi.node_publish_secret_ref {
        match secret.name.as_str() {
            "" => {
                let at = path.field("nodePublishSecretRef");
                errors.required(&at.field("name"), "");
            }
            name => {
                errors.check(&path.field("name"), name, names::validate_dns_subdomain);
            }
        }
    }
}

/// Validates the name of a driver of volumes or devices.
pub fn validate_driver(driver: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if driver.is_empty() {
        return errors.required(path, "");
    }
    if driver.len() > DRIVER_MAX {
        errors.too_long(path, DRIVER_MAX);
    }
    let wrong = names::validate_dns_subdomain(&driver.to_lowercase());
    errors.all_invalid(path, driver, wrong);
}

/// Validates the keys of a ConfigMap or Secret that become files.
pub fn validate_items(items: &[KeyToPath], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, item) in items.iter().enumerate() {
        let path = path.index(index);
        let at = path.field("path");
        errors.not_empty(&path.field("key"), &item.key);
        errors.not_empty(&at, &item.path);
        paths::validate_not_reserved(&item.path, &at, errors);
        paths::validate_mode(item.mode, &path.field("mode"), errors);
    }
}
