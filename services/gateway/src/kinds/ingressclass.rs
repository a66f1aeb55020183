//! IngressClass.

use setpoint_proto::networking::IngressClass;

use super::StoredKind;

impl StoredKind for IngressClass {}
