//! NetworkPolicy.

use setpoint_proto::networking::NetworkPolicy;

use super::StoredKind;

impl StoredKind for NetworkPolicy {}
