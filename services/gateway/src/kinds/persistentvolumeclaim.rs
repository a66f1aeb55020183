//! PersistentVolumeClaim.

use setpoint_proto::core::PersistentVolumeClaim;

use super::StoredKind;

impl StoredKind for PersistentVolumeClaim {}
