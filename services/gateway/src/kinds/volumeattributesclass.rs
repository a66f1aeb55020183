//! VolumeAttributesClass.

use setpoint_proto::storage::VolumeAttributesClass;

use super::StoredKind;

impl StoredKind for VolumeAttributesClass {}
