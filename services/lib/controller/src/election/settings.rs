//! The timing of elections.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;
use setpoint_model::replicas::SYSTEM_NAMESPACE;

/// The timing of an election. A standby takes over `lease_duration` after a crash of the leader, or at once after an
/// orderly stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Whether replicas elect a leader; false if there is one replica only.
    ///
    /// Without an election, the process leads from its start to its end, without a fence.
    pub leader_elect: bool,
    /// Time after the last renewal after which another replica takes over.
    #[serde(with = "DurationText")]
    pub lease_duration: Duration,
    /// Time for which a leader tries to renew before it stops, which it does at nine tenths of `lease_duration` at the
    /// latest.
    #[serde(with = "DurationText")]
    pub renew_deadline: Duration,
    /// Interval at which a candidate tries to acquire the Lease; a leader renews at half of `renew_deadline`, or at
    /// this interval if it is longer.
    #[serde(with = "DurationText")]
    pub retry_period: Duration,
    /// Namespace of the Lease.
    pub namespace: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self::new(15_000, 10_000, 2_000)
    }
}

impl Settings {
    /// The largest factor by which a delay is extended, so that candidates do not act at the same time.
    pub(super) const JITTER: f64 = 1.2;

    fn new(lease_ms: u64, renew_ms: u64, retry_ms: u64) -> Self {
        Self {
            leader_elect: true,
            lease_duration: Duration::from_millis(lease_ms),
            renew_deadline: Duration::from_millis(renew_ms),
            retry_period: Duration::from_millis(retry_ms),
            namespace: SYSTEM_NAMESPACE.to_owned(),
        }
    }

    /// Returns timings with which a standby leads within three seconds of a crash, at the price of more renewals and
    /// shorter deadlines.
    pub fn fast() -> Self {
        Self::new(2_000, 1_400, 300)
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// The relation that does not hold.
    pub fn validate(&self) -> Result<(), Error> {
        if self.retry_period.is_zero() {
            return Err(Error::NoRetryPeriod);
        }
        if self.renew_deadline <= self.retry_period.mul_f64(Self::JITTER) {
            return Err(Error::RenewDeadline(self.renew_deadline, self.retry_period));
        }
        if self.lease_duration <= self.renew_deadline {
            return Err(Error::LeaseDuration(
                self.lease_duration,
                self.renew_deadline,
            ));
        }
        Ok(())
    }

    /// Returns the lease duration in seconds, rounded up so that no other candidate acts earlier.
    pub(super) fn lease_seconds(&self) -> i32 {
        i32::try_from(self.lease_duration.as_millis().div_ceil(1000)).unwrap_or(i32::MAX)
    }

    /// Returns the interval of renewals: half of the renew deadline. Upstream renews at each retry period, which costs
    /// an idle cluster more than twice as many writes.
    pub(super) fn renewal_period(&self) -> Duration {
        self.retry_period.max(self.renew_deadline / 2)
    }

    /// Returns the time after the last renewal at which a leader stops.
    ///
    /// As upstream, the renew deadline begins with the attempt that fails, one period after the last renewal, so that a
    /// leader survives an outage of this time less the period, and less the time that the store takes to answer again:
    /// 8.5 s by default, upstream 8 to 10 s. A tenth of the lease duration is left for the work to stop, and for clocks
    /// whose rates differ.
    pub(super) fn stop_after(&self) -> Duration {
        let latest = self.lease_duration.mul_f64(0.9);
        let wanted = self.renewal_period() + self.renew_deadline;
        wanted.min(latest).max(self.renew_deadline)
    }

    pub(super) fn pause(&self) -> Duration {
        self.retry_period
            .mul_f64(rand::random_range(1.0..Self::JITTER))
    }
}

/// Settings are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A leader would stop after another could have started.
    #[error("lease_duration ({0:?}) must be longer than renew_deadline ({1:?})")]
    LeaseDuration(Duration, Duration),
    /// A leader would stop before its second attempt to renew.
    #[error("renew_deadline ({0:?}) must be longer than 1.2 times retry_period ({1:?})")]
    RenewDeadline(Duration, Duration),
    /// The retry period is zero.
    #[error("retry_period must be longer than zero")]
    NoRetryPeriod,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profiles_are_valid_and_read_like_text() {
        for settings in [Settings::default(), Settings::fast()] {
            settings.validate().unwrap();
            let json = serde_json::to_value(&settings).unwrap();
            let back: Settings = serde_json::from_value(json).unwrap();
            assert_eq!(back, settings);
        }
        let json = serde_json::to_value(Settings::fast()).unwrap();
        assert_eq!(json["renew_deadline"], "1s 400ms");
    }

    #[test]
    fn a_lease_states_its_duration_in_seconds_rounded_up() {
        let seconds = |lease| Settings::new(lease, 0, 0).lease_seconds();
        assert_eq!([15_000, 2_000, 1_001, 1].map(seconds), [15, 2, 2, 1]);
        assert_eq!(seconds(u64::MAX), i32::MAX);
    }

    #[test]
    fn a_renewal_leaves_time_for_others_before_the_deadline() {
        let period = |renew, retry| {
            Settings::new(15_000, renew, retry)
                .renewal_period()
                .as_millis()
        };
        assert_eq!(
            [period(10_000, 2_000), period(10_000, 7_000)],
            [5_000, 7_000]
        );
    }

    /// Checks DG25.
    #[test]
    fn a_leader_stops_before_its_lease_expires_but_not_before_the_renew_deadline() {
        let after =
            |lease, renew, retry| Settings::new(lease, renew, retry).stop_after().as_millis();
        assert_eq!(after(15_000, 10_000, 2_000), 13_500);
        assert_eq!(after(60_000, 10_000, 2_000), 15_000);
        assert_eq!(after(10_500, 10_000, 2_000), 10_000);
        assert_eq!(Settings::fast().stop_after().as_millis(), 1_800);
    }

    #[test]
    fn a_pause_is_at_most_a_fifth_longer_than_the_retry_period() {
        let settings = Settings::default();
        for _ in 0..100 {
            let pause = settings.pause().as_millis();
            assert!((2_000..=2_400).contains(&pause), "{pause}");
        }
    }

    #[test]
    fn times_that_would_overlap_are_refused() {
        let check = |lease, renew, retry| Settings::new(lease, renew, retry).validate();
        assert!(matches!(check(10, 10, 2), Err(Error::LeaseDuration(..))));
        assert!(matches!(check(15, 12, 10), Err(Error::RenewDeadline(..))));
        assert!(matches!(check(15, 10, 0), Err(Error::NoRetryPeriod)));
    }
}
