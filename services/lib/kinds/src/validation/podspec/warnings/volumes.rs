//! Warnings about types of volumes that Kubernetes has removed, and about claims of Pods.

use setpoint_proto::core::{Volume, VolumeSource};

use crate::validation::claim;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::Warnings;

/// Warns of each volume.
pub fn warn(volumes: &[Volume], path: &FieldPath<'_>, warnings: &mut Warnings) {
    for (index, volume) in volumes.iter().enumerate() {
        let (path, source) = (path.index(index), &volume.volume_source);
        for (field, is_given, text) in removed(source) {
            if is_given {
                warnings.about(&path.field(field), text);
            }
        }
        let ephemeral = source.ephemeral.as_ref();
        if let Some(template) = ephemeral.and_then(|one| one.volume_claim_template.as_ref()) {
            let path = path.field("ephemeral");
            let path = path.field("volumeClaimTemplate");
            claim::warn_of_spec(&template.spec, &path.field("spec"), warnings);
        }
    }
}

/// Returns the types without a meaning, whether each is given, and since when it is deprecated.
fn removed(source: &VolumeSource) -> [(&'static str, bool, &'static str); 9] {
    [
        (
            "photonPersistentDisk",
            source.photon_persistent_disk.is_some(),
            "deprecated in v1.11, non-functional in v1.16+",
        ),
        (
            "gitRepo",
            source.git_repo.is_some(),
            "deprecated in v1.11, and disabled by default in v1.33+",
        ),
        (
            "scaleIO",
            source.scale_io.is_some(),
            "deprecated in v1.16, non-functional in v1.22+",
        ),
        (
            "flocker",
            source.flocker.is_some(),
            "deprecated in v1.22, non-functional in v1.25+",
        ),
        (
            "storageOS",
            source.storageos.is_some(),
            "deprecated in v1.22, non-functional in v1.25+",
        ),
        (
            "quobyte",
            source.quobyte.is_some(),
            "deprecated in v1.22, non-functional in v1.25+",
        ),
        (
            "glusterfs",
            source.glusterfs.is_some(),
            "deprecated in v1.25, non-functional in v1.26+",
        ),
        (
            "cephfs",
            source.cephfs.is_some(),
            "deprecated in v1.28, non-functional in v1.31+",
        ),
        (
            "rbd",
            source.rbd.is_some(),
            "deprecated in v1.28, non-functional in v1.31+",
        ),
    ]
}
