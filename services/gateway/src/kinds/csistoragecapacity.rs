//! CsiStorageCapacity.

use setpoint_proto::storage::CsiStorageCapacity;

use super::StoredKind;

impl StoredKind for CsiStorageCapacity {}
