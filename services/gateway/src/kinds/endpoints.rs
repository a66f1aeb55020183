//! Endpoints.

use setpoint_proto::core::Endpoints;

use super::StoredKind;

impl StoredKind for Endpoints {}
