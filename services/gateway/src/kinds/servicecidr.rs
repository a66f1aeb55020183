//! ServiceCidr.

use setpoint_proto::networking::ServiceCidr;

use super::StoredKind;

impl StoredKind for ServiceCidr {}
