//! ResourceQuota.

use setpoint_proto::core::ResourceQuota;

use super::StoredKind;

impl StoredKind for ResourceQuota {}
