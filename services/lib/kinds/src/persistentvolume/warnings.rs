//! Warnings about a PersistentVolume.

use setpoint_model::volume::CLASS;
use setpoint_proto::core::{PersistentVolume, PersistentVolumeSource};

use super::MOUNT_OPTIONS;
use crate::validation::claim::OLD_CLASS;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::{Warnings, warn_of_node_selector_terms};

const OLD_OPTIONS: &str = r#"deprecated since v1.31; use "mountOptions" attribute instead"#;

/// Warns of annotations, labels of nodes and types of volumes that are deprecated.
pub(super) fn warn(volume: &PersistentVolume, warnings: &mut Warnings) {
    let metadata = FieldPath::root("metadata");
    let annotations = metadata.field("annotations");
    for (key, text) in [(CLASS, OLD_CLASS), (MOUNT_OPTIONS, OLD_OPTIONS)] {
        if volume.metadata.annotations.contains_key(key) {
            warnings.about(&annotations.key(key), text);
        }
    }
    let (path, spec) = (FieldPath::root("spec"), &volume.spec);
    if spec.persistent_volume_reclaim_policy == "Recycle" {
        let text = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.";
        warnings.about(&path.field("persistentVolumeReclaimPolicy"), text);
    }
    let affinity = spec.node_affinity.as_ref();
    if let Some(required) = affinity.and_then(|affinity| affinity.required.as_ref()) {
        let at = path.field("nodeAffinity");
        let at = at.field("required");
        let terms = &required.node_selector_terms;
        warn_of_node_selector_terms(terms, &at.field("nodeSelectorTerms"), warnings);
    }
    for (field, is_given, text) in removed(&spec.persistent_volume_source) {
        if is_given {
            warnings.about(&path.field(field), text);
        }
    }
}

/// Returns the types without a meaning, whether each is given, and since when it is deprecated.
fn removed(source: &PersistentVolumeSource) -> [(&'static str, bool, &'static str); 6] {
    [
        (
            "cephfs",
            source.cephfs.is_some(),
            "deprecated in v1.28, non-functional in v1.31+",
        ),
        (
            "photonPersistentDisk",
            source.photon_persistent_disk.is_some(),
            "deprecated in v1.11, non-functional in v1.16+",
        ),
        (
            "scaleIO",
            source.scale_io.is_some(),
            "deprecated in v1.16, non-functional in v1.22+",
        ),
        (
            "storageOS",
            source.storageos.is_some(),
            "deprecated in v1.22, non-functional in v1.25+",
        ),
        (
            "glusterfs",
            source.glusterfs.is_some(),
            "deprecated in v1.25, non-functional in v1.26+",
        ),
        (
            "rbd",
            source.rbd.is_some(),
            "deprecated in v1.28, non-functional in v1.31+",
        ),
    ]
}
