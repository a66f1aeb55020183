//! DeviceClass.

use setpoint_proto::resource::DeviceClass;

use super::StoredKind;

impl StoredKind for DeviceClass {}
