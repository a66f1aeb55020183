//! Plan: when to count again. The count is written as the status.

use std::convert::Infallible;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use setpoint_controller::Plan;
use setpoint_model::Meta;
use setpoint_proto::core::{ResourceQuotaSpec, ResourceQuotaStatus};

use crate::Counted;

/// The delay after a read that failed.
const RETRY: Duration = Duration::from_secs(1);
/// Added to the end of a grace period, until which a Pod is counted.
const AFTER: SignedDuration = SignedDuration::from_millis(10);

/// Everything that the decision about one quota depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The metadata of the quota, as it was before its objects were counted.
    pub meta: Meta,
    /// Its spec.
    pub spec: ResourceQuotaSpec,
    /// Its status.
    pub status: ResourceQuotaStatus,
    /// The use by its objects; `None` if they could not be read.
    pub counted: Option<Counted>,
    /// The interval at which it is counted without a change.
    pub sync_period: Duration,
    /// The time.
    pub now: Timestamp,
}

/// Plans for one quota.
pub fn plan(world: &World) -> Plan<Infallible> {
    let mut plan = Plan::default();
    let Some(counted) = &world.counted else {
        plan.look_again(RETRY);
        return plan;
    };
    plan.look_again(world.sync_period);
    if let Some(changes) = counted.changes_at {
        let wait = changes.duration_since(world.now).saturating_add(AFTER);
        plan.look_again(wait.try_into().unwrap_or_default());
    }
    plan
}
