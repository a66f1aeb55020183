//! DaemonSet.

use setpoint_proto::apps::DaemonSet;

use super::StoredKind;

impl StoredKind for DaemonSet {}
