//! RuntimeClass.

use setpoint_proto::node::RuntimeClass;

use super::StoredKind;

impl StoredKind for RuntimeClass {}
