//! PersistentVolume.

use setpoint_proto::core::PersistentVolume;

use super::StoredKind;

impl StoredKind for PersistentVolume {}
