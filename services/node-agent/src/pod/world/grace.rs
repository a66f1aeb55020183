//! Deadlines and grace periods of a Pod, as the kubelet applies them.

#![warn(clippy::arithmetic_side_effects)]

use std::time::Duration;

use jiff::Timestamp;
use setpoint_model::time::seconds_after;

use super::AssignedPod;

/// The API's default for `terminationGracePeriodSeconds`.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// Minimum grace period after a preStop hook, as in the kubelet.
pub const MIN_GRACE: Duration = Duration::from_secs(2);

impl AssignedPod {
    /// Returns what is left of `activeDeadlineSeconds`, zero if it is exceeded. `None` without a deadline, or before a
    /// start time was reported.
    pub fn active_left(&self, now: Timestamp) -> Option<Duration> {
        let left = self.active_deadline()?.duration_since(now);
        Some(Duration::try_from(left).unwrap_or_default())
    }

    /// Returns the time at which `activeDeadlineSeconds` is exceeded.
    pub fn active_deadline(&self) -> Option<Timestamp> {
        let seconds = self.object.spec.active_deadline_seconds?;
        let started = self.object.status.start_time?.timestamp()?;
        Some(seconds_after(started, seconds))
    }

    /// Returns whether `activeDeadlineSeconds` is exceeded.
    pub fn is_past_deadline(&self, now: Timestamp) -> bool {
        self.active_left(now).is_some_and(|left| left.is_zero())
    }

    /// Returns the grace period for stopping containers other than by a deletion of the Pod.
    pub fn termination_grace(&self) -> Duration {
        let grace = self.object.spec.termination_grace_period_seconds;
        grace.map_or(DEFAULT_GRACE, at_least_one_second)
    }

    /// Returns what is left of the deletion's grace period.
    ///
    /// `deletionTimestamp` has whole seconds. One second is added, so that rounding never shortens the grace period.
    pub fn grace(&self, now: Timestamp) -> Duration {
        let meta = &self.object.metadata;
        let promised = meta.deletion_grace_period_seconds.unwrap_or_default();
        let promised = at_least_one_second(promised);
        let deadline = meta
            .deletion_timestamp
            .as_ref()
            .and_then(|time| time.timestamp());
        let left = deadline.map_or(promised, |deadline| {
            let left = Duration::try_from(deadline.duration_since(now));
            left.map_or(Duration::ZERO, |left| {
                left.saturating_add(Duration::from_secs(1))
            })
        });
        left.min(promised)
    }
}

/// Returns a grace period as the kubelet applies it: less than one second counts as one second.
pub fn at_least_one_second(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default().max(1))
}
