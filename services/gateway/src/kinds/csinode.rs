//! CsiNode.

use setpoint_proto::storage::CsiNode;

use super::StoredKind;

impl StoredKind for CsiNode {}
