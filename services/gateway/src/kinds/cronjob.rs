//! CronJob.

use setpoint_proto::batch::CronJob;

use super::StoredKind;

impl StoredKind for CronJob {}
