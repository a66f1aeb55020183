//! ReplicationController.

use setpoint_proto::core::ReplicationController;

use super::StoredKind;

impl StoredKind for ReplicationController {}
