//! IpAddress.

use setpoint_proto::networking::IpAddress;

use super::StoredKind;

impl StoredKind for IpAddress {}
