//! CsiDriver.

use setpoint_proto::storage::CsiDriver;

use super::StoredKind;

impl StoredKind for CsiDriver {}
