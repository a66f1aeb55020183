//! Backoff: delays the replacement of failed Pods.
//!
//! It is computed from the Pods alone, so it survives a change of the leader:
//!
//! ```text
//! failures    = failed Pods that ended after the last success
//! next create = last failure + min(10 s · 2^(failures − 1), 10 min)
//! ```
//!
//! Upstream keeps the number of failures in memory, and so also counts Pods that were deleted while they ran. Here such
//! a Pod counts until its finalizer is removed: then it cannot be told from one that the controller itself has deleted.
#![warn(clippy::arithmetic_side_effects)]

use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::exponential;

use crate::tally::is_failed;
use crate::{JobPodView, World};

/// The delay after the first failure.
const BASE: Duration = Duration::from_secs(10);
/// The longest delay.
const LONGEST: Duration = Duration::from_secs(600);

/// Returns the time until a Pod may be created; zero if one may be created now.
pub(crate) fn wait(world: &World) -> Duration {
    let succeeded = world.owned().filter(|pod| pod.has_succeeded());
    let last_success = succeeded.map(|pod| pod.details().ended).max();
    let failed = world
        .owned()
        .filter(|pod| is_failed(&world.job, pod) && (pod.is_tracked() || !pod.base.meta.deleting));
    let ends: Vec<_> = failed
        .map(|pod| pod.details().ended)
        .filter(|end| last_success.is_none_or(|success| *end > success))
        .collect();
    remaining(ends.len(), ends.iter().max(), world.now)
}

/// Returns the time until the last failed Pod of an index may be replaced.
pub(crate) fn wait_for(last: &JobPodView, now: Timestamp) -> Duration {
    let details = last.details();
    let failures = usize::try_from(details.failures.all()).unwrap_or_default();
    remaining(failures.saturating_add(1), Some(&details.ended), now)
}

fn remaining(failures: usize, last: Option<&Timestamp>, now: Timestamp) -> Duration {
    let Some(last) = last else {
        return Duration::ZERO;
    };
    let repeated = u32::try_from(failures).unwrap_or(u32::MAX);
    let delay = exponential(BASE, repeated.saturating_sub(1), LONGEST);
    let passed = Duration::try_from(now.duration_since(*last)).unwrap_or_default();
    delay.saturating_sub(passed)
}
