//! EndpointSlice.

use setpoint_proto::discovery::EndpointSlice;

use super::StoredKind;

impl StoredKind for EndpointSlice {}
