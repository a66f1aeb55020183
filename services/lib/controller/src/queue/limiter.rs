//! The delays of keys that fail: per key, and a bucket for all retries.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_task::exponential;
use tokio::time::Instant;

/// The delay of a key after each failure in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limiter {
    /// 5 ms, then twice as long each time, up to 1000 s.
    #[default]
    Exponential,
    /// 5 ms five times, then 10 s.
    FastSlow,
}

impl Limiter {
    const FIRST: Duration = Duration::from_millis(5);
    const LONGEST: Duration = Duration::from_secs(1000);
    const SLOW: Duration = Duration::from_secs(10);
    const QUICK_TRIES: u32 = 5;
    const FIRST_REFUSED: Duration = Duration::from_secs(1);

    /// Returns the delay after one more failure than `failures`.
    pub fn delay(self, failures: u32) -> Duration {
        match self {
            Self::Exponential => exponential(Self::FIRST, failures, Self::LONGEST),
            Self::FastSlow if failures < Self::QUICK_TRIES => Self::FIRST,
            Self::FastSlow => Self::SLOW,
        }
    }

    /// Returns the delay after one more failure than `failures` if validation has refused the write: it succeeds no
    /// sooner than the object changes, which queues the key at once.
    pub fn delay_of_refused(self, failures: u32) -> Duration {
        match self {
            Self::Exponential => exponential(Self::FIRST_REFUSED, failures, Self::LONGEST),
            Self::FastSlow => Self::SLOW,
        }
    }
}

/// A token bucket that reserves future tokens.
#[derive(Debug)]
pub(crate) struct Bucket {
    per_second: f64,
    burst: f64,
    /// Negative while future tokens are reserved.
    tokens: f64,
    filled: Option<Instant>,
}

impl Bucket {
    pub(crate) const fn new(per_second: f64, burst: f64) -> Self {
        Self {
            per_second,
            burst,
            tokens: burst,
            filled: None,
        }
    }

    /// Returns upstream's overall limit on retries of all keys.
    pub(super) const fn for_retries() -> Self {
        Self::new(10.0, 100.0)
    }

    /// Reserves a token and returns the time until it is available.
    pub(crate) fn reserve(&mut self, now: Instant) -> Duration {
        self.fill(now);
        self.tokens -= 1.0;
        Duration::from_secs_f64((-self.tokens).max(0.0) / self.per_second)
    }

    /// Takes a token if there is one. Returns whether there was.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        self.fill(now);
        let has = self.tokens >= 1.0;
        if has {
            self.tokens -= 1.0;
        }
        has
    }

    fn fill(&mut self, now: Instant) {
        let passed = now - self.filled.replace(now).unwrap_or(now);
        self.tokens = (self.tokens + passed.as_secs_f64() * self.per_second).min(self.burst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_doubles_up_to_its_cap() {
        let delays = [0, 1, 2, 17, 18, 40].map(|n| Limiter::Exponential.delay(n).as_millis());
        assert_eq!(delays, [5, 10, 20, 655_360, 1_000_000, 1_000_000]);
    }

    #[test]
    fn fast_slow_is_quick_five_times() {
        let delays = [0, 4, 5, 1000].map(|n| Limiter::FastSlow.delay(n).as_millis());
        assert_eq!(delays, [5, 5, 10_000, 10_000]);
    }

    #[test]
    fn what_validation_refuses_is_slow_from_the_start() {
        let delays = [0, 1, 9, 10, 40].map(|n| Limiter::Exponential.delay_of_refused(n).as_secs());
        assert_eq!(delays, [1, 2, 512, 1_000, 1_000]);
        assert_eq!(Limiter::FastSlow.delay_of_refused(0).as_secs(), 10);
    }

    #[test]
    fn a_burst_is_free_and_the_rest_is_paced() {
        let mut bucket = Bucket::for_retries();
        let now = Instant::now();
        assert!((0..100).all(|_| bucket.reserve(now).is_zero()));
        assert_eq!(bucket.reserve(now), Duration::from_millis(100));
        assert_eq!(bucket.reserve(now), Duration::from_millis(200));
        let later = now + Duration::from_secs(60);
        assert!((0..100).all(|_| bucket.reserve(later).is_zero()));
        assert!(!bucket.reserve(later).is_zero());
    }
}
