//! VolumeAttachment: the spec is immutable, and names a PersistentVolume or has the spec of one.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_proto::storage::{
    VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentStatus, VolumeError,
};

use super::persistentvolume;
use super::{Paths, StoredKind, status};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::metadata;
use crate::validation::podspec::validate_driver;

/// The largest total size of the keys and values of the attachment's metadata, in bytes.
const METADATA_MAX: usize = 256 << 10;
/// The longest message of an error, in bytes.
const MESSAGE_MAX: usize = 1024;

impl StoredKind for VolumeAttachment {
    const RETURNS_DELETED: bool = true;
    const STATUS_RESETS: Paths = &[&["spec"], &["metadata"]];
    const ALLOWS_UNCONDITIONAL_UPDATE: bool = false;

    status::status_items!(uncounted);

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
        metadata::keep_for_status(&mut self.metadata, &old.metadata);
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let (path, spec) = (FieldPath::root("spec"), &self.spec);
        validate_driver(&spec.attacher, &path.field("attacher"), errors);
        validate_source(&spec.source, &path.field("source"), errors);
        let at = path.field("nodeName");
        errors.check(&at, &spec.node_name, names::validate_dns_subdomain);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        errors.immutable(&FieldPath::root("spec"), &self.spec, &old.spec);
    }

    fn validate_status_update(&self, _old: &Self, errors: &mut FieldErrors) {
        validate_status(&self.status, &FieldPath::root("status"), errors);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let volume = self.spec.source.persistent_volume_name.as_deref();
        Some(match column {
            "PV" => volume.unwrap_or_default().into(),
            "Attached" => self.status.attached.into(),
            _ => return None,
        })
    }
}

fn validate_source(
    source: &VolumeAttachmentSource,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let exactly_one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let at = path.field("persistentVolumeName");
    match (&source.inline_volume_spec, &source.persistent_volume_name) {
        (None, None) => errors.required(path, exactly_one),
        (Some(_), Some(_)) => errors.forbidden(path, exactly_one),
        (None, Some(name)) => {
            if name.is_empty() {
                errors.required(&at, "must specify non empty persistentVolumeName");
            }
            errors.check(&at, name, names::validate_dns_subdomain);
        }
        (Some(spec), None) => {
            let at = path.field("inlineVolumeSpec");
            persistentvolume::validate_inline(spec, &at, errors);
        }
    }
}

fn validate_status(
    status: &VolumeAttachmentStatus,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let metadata = &status.attachment_metadata;
    let size = |data: &BTreeMap<String, String>| -> usize {
        data.iter()
            .map(|(key, value)| key.len() + value.len())
            .sum()
    };
    if size(metadata) > METADATA_MAX {
        errors.too_long(&path.field("attachmentMetadata"), METADATA_MAX);
    }
    for (error, field) in [
        (&status.attach_error, "attachError"),
        (&status.detach_error, "detachError"),
    ] {
        if let Some(error) = error {
            validate_error(error, &path.field(field), errors);
        }
    }
}

fn validate_error(error: &VolumeError, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if error.message.len() > MESSAGE_MAX {
        errors.too_long(&path.field("message"), MESSAGE_MAX);
    }
    if let Some(code) = error.error_code.filter(|code| *code < 0) {
        let detail = format!("must be between 0 and {}, inclusive", i32::MAX);
        errors.invalid(&path.field("errorCode"), code, detail);
    }
}
