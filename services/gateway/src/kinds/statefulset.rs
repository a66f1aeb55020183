//! StatefulSet.

use setpoint_proto::apps::StatefulSet;

use super::StoredKind;

impl StoredKind for StatefulSet {}
