//! Defaults and validation of the source of a PersistentVolume.

use setpoint_model::names;
use setpoint_proto::core::{
    AzureFilePersistentVolumeSource, AzureFileVolumeSource, CephFsPersistentVolumeSource,
    CephFsVolumeSource, CinderPersistentVolumeSource, CinderVolumeSource,
    CsiPersistentVolumeSource, FlexPersistentVolumeSource, FlexVolumeSource,
    GlusterfsPersistentVolumeSource, GlusterfsVolumeSource, IscsiPersistentVolumeSource,
    IscsiVolumeSource, LocalObjectReference, PersistentVolumeSource, RbdPersistentVolumeSource,
    RbdVolumeSource, ScaleIoPersistentVolumeSource, ScaleIoVolumeSource, SecretReference,
    StorageOsPersistentVolumeSource, StorageOsVolumeSource, VolumeSource,
};

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec::{
    fill_azure_disk, validate_driver, validate_no_backsteps, validate_volume,
};
use crate::validation::set_default;

/// The largest total length of the names of an iSCSI volume and its portal.
const PORTAL_MAX: usize = 64;

/// Sets the defaults of the source.
pub(super) fn fill_defaults(source: &mut PersistentVolumeSource) {
    if let Some(host) = &mut source.host_path {
        host.r#type.get_or_insert_default();
    }
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

/// Validates the first source that is set, and forbids the others.
pub(super) fn validate(
    source: &PersistentVolumeSource,
    volume: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let mut forms = forms(source).into_iter();
    let Some((first, form)) = forms.next() else {
        return errors.required(path, "must specify a volume type");
    };
    // Upstream's field names in errors are not always those of the API.
    let at = path.field(match first {
        "gcePersistentDisk" => "persistentDisk",
        other => other,
    });
    validate_volume(&form, first, &at, errors);
    validate_own(source, first, volume, &at, errors);
    for (field, _) in forms {
        let field = if field == "cephfs" { "cephFS" } else { field };
        let detail = "may not specify more than 1 volume type";
        errors.forbidden(&path.field(field), detail);
    }
}

/// Returns whether the source differs from the old one in more than an added secret for expansion.
pub(super) fn is_changed(new: &PersistentVolumeSource, old: &PersistentVolumeSource) -> bool {
    let mut new = new.clone();
    if let (Some(new), Some(old)) = (&mut new.csi, &old.csi)
        && old.controller_expand_secret_ref.is_none()
    {
        new.controller_expand_secret_ref = None;
    }
    new != *old
}

/// Returns whether volumes of the type are mounted with options.
pub(super) fn has_mount_options(source: &PersistentVolumeSource) -> bool {
    let without = [
        "flexVolume",
        "flocker",
        "fc",
        "hostPath",
        "local",
        "portworxVolume",
        "scaleIO",
        "storageos",
        "csi",
    ];
    forms(source)
        .iter()
        .any(|(field, _)| !without.contains(field))
}

/// Returns the sources that are set, in upstream's order, each in the form that the volume of a Pod would have. Types
/// that Pods do not have are empty.
fn forms(source: &PersistentVolumeSource) -> Vec<(&'static str, VolumeSource)> {
    let mut forms = Vec::new();
    macro_rules! form {
        ($name:literal, $field:ident) => {
            form!($name, $field, Clone::clone)
        };
        ($name:literal, $field:ident, $convert:expr) => {
            if let Some(volume) = &source.$field {
                let $field = Some($convert(volume));
                let form = VolumeSource {
                    $field,
                    ..Default::default()
                };
                forms.push(($name, form));
            }
        };
    }
    form!("hostPath", host_path);
    form!("gcePersistentDisk", gce_persistent_disk);
    form!("awsElasticBlockStore", aws_elastic_block_store);
    form!(
        "glusterfs",
        glusterfs,
        |volume: &GlusterfsPersistentVolumeSource| {
            GlusterfsVolumeSource {
                endpoints: volume.endpoints.clone(),
                path: volume.path.clone(),
                ..Default::default()
            }
        }
    );
    form!("flocker", flocker);
    form!("nfs", nfs);
    form!("rbd", rbd, |volume: &RbdPersistentVolumeSource| {
        RbdVolumeSource {
            monitors: volume.monitors.clone(),
            image: volume.image.clone(),
            ..Default::default()
        }
    });
    form!("quobyte", quobyte);
    form!("cephfs", cephfs, |volume: &CephFsPersistentVolumeSource| {
        CephFsVolumeSource {
            monitors: volume.monitors.clone(),
            ..Default::default()
        }
    });
    form!("iscsi", iscsi, iscsi_form);
    form!("cinder", cinder, |disk: &CinderPersistentVolumeSource| {
        CinderVolumeSource {
            volume_id: disk.volume_id.clone(),
            secret_ref: disk.secret_ref.as_ref().map(local),
            ..Default::default()
        }
    });
    form!("fc", fc);
    form!(
        "flexVolume",
        flex_volume,
        |volume: &FlexPersistentVolumeSource| {
            FlexVolumeSource {
                driver: volume.driver.clone(),
                options: volume.options.clone(),
                ..Default::default()
            }
        }
    );
    form!(
        "azureFile",
        azure_file,
        |volume: &AzureFilePersistentVolumeSource| {
            AzureFileVolumeSource {
                secret_name: volume.secret_name.clone(),
                share_name: volume.share_name.clone(),
                ..Default::default()
            }
        }
    );
    form!("vsphereVolume", vsphere_volume);
    form!("photonPersistentDisk", photon_persistent_disk);
    form!("portworxVolume", portworx_volume);
    form!("azureDisk", azure_disk);
    form!(
        "scaleIO",
        scale_io,
        |volume: &ScaleIoPersistentVolumeSource| {
            ScaleIoVolumeSource {
                gateway: volume.gateway.clone(),
                system: volume.system.clone(),
                volume_name: volume.volume_name.clone(),
                ..Default::default()
            }
        }
    );
    if source.local.is_some() {
        forms.push(("local", VolumeSource::default()));
    }
    form!(
        "storageos",
        storageos,
        |disk: &StorageOsPersistentVolumeSource| {
            StorageOsVolumeSource {
                volume_name: disk.volume_name.clone(),
                volume_namespace: disk.volume_namespace.clone(),
                ..Default::default()
            }
        }
    );
    if source.csi.is_some() {
        forms.push(("csi", VolumeSource::default()));
    }
    forms
}

fn iscsi_form(volume: &IscsiPersistentVolumeSource) -> IscsiVolumeSource {
    IscsiVolumeSource {
        target_portal: volume.target_portal.clone(),
        iqn: volume.iqn.clone(),
        lun: volume.lun,
        chap_auth_discovery: volume.chap_auth_discovery,
        chap_auth_session: volume.chap_auth_session,
        secret_ref: volume.secret_ref.as_ref().map(local),
        initiator_name: volume.initiator_name.clone(),
        ..Default::default()
    }
}

fn local(secret: &SecretReference) -> LocalObjectReference {
    LocalObjectReference {
        name: secret.name.clone(),
    }
}

/// Validates the fields that volumes of Pods do not have.
fn validate_own(
    source: &PersistentVolumeSource,
    field: &str,
    volume: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    match field {
        "glusterfs" => {
            let namespace = source.glusterfs.as_ref();
            let namespace = namespace.and_then(|volume| volume.endpoints_namespace.as_deref());
            if let Some(namespace) = namespace {
                let at = path.field("endpointsNamespace");
                errors.check(&at, namespace, names::validate_dns_label);
            }
        }
        "iscsi" => {
            if let Some(iscsi) = &source.iscsi {
                validate_iscsi(iscsi, volume, path, errors);
            }
        }
        "cinder" => {
            let disk = source.cinder.as_ref();
            let secret = disk.and_then(|disk| disk.secret_ref.as_ref());
            if let Some(secret) = secret {
                let at = path.field("secretRef");
                errors.not_empty(&at.field("namespace"), &secret.namespace);
            }
        }
        "azureFile" => {
            let volume = source.azure_file.as_ref();
            if let Some("") = volume.and_then(|volume| volume.secret_namespace.as_deref()) {
                errors.required(&path.field("secretNamespace"), "");
            }
        }
        "local" => validate_local(source, path, errors),
        "storageos" => {
            let disk = source.storageos.as_ref();
            if let Some(secret) = disk.and_then(|disk| disk.secret_ref.as_ref()) {
                let at = path.field("secretRef");
                errors.not_empty(&at.field("name"), &secret.name);
                errors.not_empty(&at.field("namespace"), &secret.namespace);
            }
        }
        "csi" => {
            if let Some(csi) = &source.csi {
                validate_csi(csi, path, errors);
            }
        }
        _ => {}
    }
}

fn validate_iscsi(
    iscsi: &IscsiPersistentVolumeSource,
    volume: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let length = volume.len() + 1 + iscsi.target_portal.len();
    if iscsi.initiator_name.is_some() && length > PORTAL_MAX {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 \
            characters if iscsi.initiatorName is specified.";
        errors.invalid(&path.field("targetportal"), &iscsi.target_portal, detail);
    }
    if let Some(secret) = &iscsi.secret_ref {
        let at = path.field("secretRef");
        errors.not_empty(&at.field("name"), &secret.name);
    }
}

fn validate_local(source: &PersistentVolumeSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("path");
    match source.local.as_ref().map(|local| local.path.as_str()) {
        Some("") => errors.required(&at, ""),
        Some(path) => validate_no_backsteps(path, &at, errors),
        None => {}
    }
}

fn validate_csi(csi: &CsiPersistentVolumeSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_driver(&csi.driver, &path.field("driver"), errors);
    errors.not_empty(&path.field("volumeHandle"), &csi.volume_handle);
    for (secret, field) in [
        (
            &csi.controller_publish_secret_ref,
            "controllerPublishSecretRef",
        ),
        (
            &csi.controller_expand_secret_ref,
            "controllerExpandSecretRef",
        ),
        (&csi.node_publish_secret_ref, "nodePublishSecretRef"),
        (&csi.node_expand_secret_ref, "nodeExpandSecretRef"),
    ] {
        let Some(secret) = secret else {
            continue;
        };
        let path = path.field(field);
        let at = path.field("name");
        errors.check_required(&at, &secret.name, names::validate_dns_subdomain);
        let at = path.field("namespace");
        errors.check_required(&at, &secret.namespace, names::validate_dns_label);
    }
}
