//! Volumes: none of the host, and in `restricted` only types that need no rights on a node.

use std::collections::BTreeSet;

use setpoint_proto::core::{PodSpec, VolumeSource};
use setpoint_proto::meta::ObjectMeta;

use crate::Violation;
use crate::wording::{number, quoted};

pub(super) fn host_paths(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    let volumes = spec.volumes.iter();
    let of_host = volumes.filter(|volume| volume.volume_source.host_path.is_some());
    let names: Vec<_> = of_host.map(|volume| &volume.name).collect();
    let noun = number("volume", "volumes", names.len());
    let detail = || format!("{noun} {}", quoted(&names));
    (!names.is_empty()).then(|| Violation::new("hostPath volumes", detail()))
}

pub(super) fn restricted(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    let volumes = spec.volumes.iter();
    let others: Vec<_> = volumes
        .filter(|volume| !is_allowed(&volume.volume_source))
        .collect();
    let types = others.iter().map(|volume| type_of(&volume.volume_source));
    let types: BTreeSet<_> = types.collect();
    let count = others.len();
    let detail = || {
        format!(
            "{} {} {} {} {}",
            number("volume", "volumes", count),
            quoted(others.iter().map(|volume| &volume.name)),
            number("uses", "use", count),
            number(
                "restricted volume type",
                "restricted volume types",
                types.len()
            ),
            quoted(&types)
        )
    };
    (count > 0).then(|| Violation::new("restricted volume types", detail()))
}

fn is_allowed(source: &VolumeSource) -> bool {
    source.config_map.is_some()
        || source.csi.is_some()
        || source.downward_api.is_some()
        || source.empty_dir.is_some()
        || source.ephemeral.is_some()
        || source.image.is_some()
        || source.persistent_volume_claim.is_some()
        || source.projected.is_some()
        || source.secret.is_some()
}

/// Returns the type of a volume that is not allowed, by the name of its field.
fn type_of(source: &VolumeSource) -> &'static str {
    let types = [
        ("hostPath", source.host_path.is_some()),
        ("gcePersistentDisk", source.gce_persistent_disk.is_some()),
        (
            "awsElasticBlockStore",
            source.aws_elastic_block_store.is_some(),
        ),
        ("gitRepo", source.git_repo.is_some()),
        ("nfs", source.nfs.is_some()),
        ("iscsi", source.iscsi.is_some()),
        ("glusterfs", source.glusterfs.is_some()),
        ("rbd", source.rbd.is_some()),
        ("flexVolume", source.flex_volume.is_some()),
        ("cinder", source.cinder.is_some()),
        ("cephfs", source.cephfs.is_some()),
        ("flocker", source.flocker.is_some()),
        ("fc", source.fc.is_some()),
        ("azureFile", source.azure_file.is_some()),
        ("vsphereVolume", source.vsphere_volume.is_some()),
        ("quobyte", source.quobyte.is_some()),
        ("azureDisk", source.azure_disk.is_some()),
        (
            "photonPersistentDisk",
            source.photon_persistent_disk.is_some(),
        ),
        ("portworxVolume", source.portworx_volume.is_some()),
        ("scaleIO", source.scale_io.is_some()),
        ("storageos", source.storageos.is_some()),
    ];
    let found = types.iter().find(|(_, is_set)| *is_set);
    found.map_or("unknown", |(name, _)| name)
}
