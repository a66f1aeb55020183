//! ResourceClaim, ResourceClaimTemplate.

use setpoint_proto::resource::{ResourceClaim, ResourceClaimTemplate};

use super::StoredKind;

impl StoredKind for ResourceClaim {}
impl StoredKind for ResourceClaimTemplate {}
