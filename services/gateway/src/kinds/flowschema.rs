//! FlowSchema.

use setpoint_proto::flowcontrol::FlowSchema;

use super::StoredKind;

impl StoredKind for FlowSchema {}
