//! Job.

use setpoint_proto::batch::Job;

use super::StoredKind;

impl StoredKind for Job {}
