//! How long a failing key rests.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_task::exponential;

/// How long a key rests after each failure in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limiter {
    /// 5 ms, then twice as long each time, up to 1000 s.
    #[default]
    Exponential,
    /// Five times 5 ms, then always 10 s.
    FastSlow,
}

impl Limiter {
    const FIRST: Duration = Duration::from_millis(5);
    const LONGEST: Duration = Duration::from_secs(1000);
    const SLOW: Duration = Duration::from_secs(10);
    const QUICK_TRIES: u32 = 5;

    /// The rest after one more failure, when it has failed this many times before.
    pub fn delay(self, failures: u32) -> Duration {
        match self {
            Self::Exponential => exponential(Self::FIRST, failures, Self::LONGEST),
            Self::FastSlow if failures < Self::QUICK_TRIES => Self::FIRST,
            Self::FastSlow => Self::SLOW,
        }
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
}
