//! Ingress.

use setpoint_proto::networking::Ingress;

use super::StoredKind;

impl StoredKind for Ingress {}
