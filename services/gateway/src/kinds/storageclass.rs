//! StorageClass.

use setpoint_proto::storage::StorageClass;

use super::StoredKind;

impl StoredKind for StorageClass {}
