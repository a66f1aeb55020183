//! PriorityLevelConfiguration.

use setpoint_proto::flowcontrol::PriorityLevelConfiguration;

use super::StoredKind;

impl StoredKind for PriorityLevelConfiguration {}
