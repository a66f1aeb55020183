//! VolumeAttachment.

use setpoint_proto::storage::VolumeAttachment;

use super::StoredKind;

impl StoredKind for VolumeAttachment {}
