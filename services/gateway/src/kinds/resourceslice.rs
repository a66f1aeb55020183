//! ResourceSlice.

use setpoint_proto::resource::ResourceSlice;

use super::StoredKind;

impl StoredKind for ResourceSlice {}
