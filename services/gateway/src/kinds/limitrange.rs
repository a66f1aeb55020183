//! LimitRange.

use setpoint_proto::core::LimitRange;

use super::StoredKind;

impl StoredKind for LimitRange {}
