//! Whether a container that ended is started again, and when.

#![warn(clippy::arithmetic_side_effects)]

use std::time::{Duration, Instant};

use jiff::Timestamp;
use setpoint_proto::core::{Container, PodSpec};

/// The rest before the second restart; each later one is twice as long.
const FIRST: Duration = Duration::from_secs(10);
/// No rest is longer.
pub const LONGEST: Duration = Duration::from_secs(300);
/// A container that ran for this long has recovered: its restarts are counted anew.
const GOOD: Duration = Duration::from_secs(600);

/// Which ends of a container call for another start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Every end.
    Always,
    /// An end with a code other than 0.
    OnFailure,
    /// None.
    Never,
}

impl Policy {
    /// The policy of a Pod's containers.
    pub fn of(spec: &PodSpec) -> Self {
        match spec.restart_policy.as_str() {
            "OnFailure" => Self::OnFailure,
            "Never" => Self::Never,
            _ => Self::Always,
        }
    }

    /// The policy of one of its init containers: those are to end, so "always" means "until it succeeds".
    pub fn of_init(spec: &PodSpec, container: &Container) -> Self {
        match Self::of(spec) {
            _ if is_sidecar(container) => Self::Always,
            Self::Always => Self::OnFailure,
            other => other,
        }
    }

    /// Is a container that ended with this code started again?
    pub fn restarts(self, code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => code != 0,
            Self::Never => false,
        }
    }
}

/// An init container that starts in its turn, and then runs beside the others.
pub fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// How an attempt at a container ended, as far as its restart depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ended {
    /// With this code.
    pub code: i32,
    /// When it had begun.
    pub started: Timestamp,
    /// When it ended.
    pub finished: Timestamp,
    /// When this agent noticed that it had ended, by a clock that nobody sets; `None` if it was not there.
    pub noticed: Option<Instant>,
    /// The rest that was set after it when it was started.
    pub backoff: Duration,
}

impl Ended {
    /// How long to rest after it: what was set, or nothing if it ran well.
    pub fn rest(&self) -> Duration {
        let ran = Duration::try_from(self.finished.duration_since(self.started));
        if ran.unwrap_or_default() >= GOOD {
            Duration::ZERO
        } else {
            self.backoff
        }
    }

    /// What is left of that rest at the moment `now`, which is `instant` by a clock that nobody sets.
    ///
    /// The longer of both counts: the machine's clock knows of the time before this agent, and the other one goes on
    /// where the machine's clock is set back.
    pub fn wait(&self, now: Timestamp, instant: Instant) -> Duration {
        let passed = Duration::try_from(now.duration_since(self.finished)).unwrap_or_default();
        let noticed = self.noticed.unwrap_or(instant);
        let passed = passed.max(instant.saturating_duration_since(noticed));
        self.rest().saturating_sub(passed)
    }

    /// The rest to set after the next attempt.
    pub fn next_backoff(&self) -> Duration {
        match self.rest() {
            Duration::ZERO => FIRST,
            rest => rest.saturating_mul(2).min(LONGEST),
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::arithmetic_side_effects,
    reason = "the numbers are the test's own"
)]
mod tests {
    use super::*;

    fn ended(ran: i64, backoff: u64) -> Ended {
        Ended {
            code: 1,
            started: Timestamp::from_second(1000).unwrap(),
            finished: Timestamp::from_second(1000_i64.saturating_add(ran)).unwrap(),
            noticed: None,
            backoff: Duration::from_secs(backoff),
        }
    }

    /// Checks N1.
    #[test]
    fn the_first_restart_is_at_once_and_later_ones_rest_twice_as_long_up_to_five_minutes() {
        let mut attempt = ended(1, 0);
        let mut rests = Vec::new();
        for _ in 0..8 {
            rests.push(attempt.rest().as_secs());
            attempt = Ended {
                backoff: attempt.next_backoff(),
                ..attempt
            };
        }
        assert_eq!(rests, [0, 10, 20, 40, 80, 160, 300, 300]);
    }

    /// Checks N1.
    #[test]
    fn ten_good_minutes_forget_the_restarts() {
        assert_eq!(ended(599, 300).rest(), LONGEST);
        assert_eq!(ended(600, 300).rest(), Duration::ZERO);
        assert_eq!(ended(600, 300).next_backoff(), FIRST);
    }

    #[test]
    fn the_rest_counts_from_the_end_of_the_attempt() {
        let attempt = ended(5, 40);
        let wait = |second| {
            let now = Timestamp::from_second(second).unwrap();
            attempt.wait(now, Instant::now()).as_secs()
        };
        assert_eq!(
            [wait(1005), wait(1030), wait(1045), wait(9999)],
            [40, 15, 0, 0]
        );
    }

    /// Checks F41.
    #[test]
    fn a_clock_that_is_set_back_makes_no_rest_longer() {
        let noticed = Instant::now();
        let attempt = Ended {
            noticed: Some(noticed),
            ..ended(5, 40)
        };
        let an_hour_back = attempt.finished - Duration::from_secs(3600);
        let wait = |seconds| {
            let instant = noticed + Duration::from_secs(seconds);
            attempt.wait(an_hour_back, instant).as_secs()
        };
        assert_eq!([wait(0), wait(25), wait(40)], [40, 15, 0]);
    }

    /// Checks N1.
    #[test]
    fn the_restart_policy_says_which_ends_call_for_another_start() {
        let restarts = |policy: &str, code| {
            let restart_policy = policy.to_owned();
            Policy::of(&PodSpec {
                restart_policy,
                ..Default::default()
            })
            .restarts(code)
        };
        let matrix = ["Always", "OnFailure", "Never"]
            .map(|policy| [restarts(policy, 0), restarts(policy, 1)]);
        assert_eq!(matrix, [[true, true], [false, true], [false, false]]);
    }

    #[test]
    fn an_init_container_is_repeated_until_it_succeeds_and_a_sidecar_always() {
        let spec = PodSpec {
            restart_policy: "Always".into(),
            ..Default::default()
        };
        let sidecar = Container {
            restart_policy: Some("Always".into()),
            ..Default::default()
        };
        assert_eq!(
            Policy::of_init(&spec, &Container::default()),
            Policy::OnFailure
        );
        assert_eq!(Policy::of_init(&spec, &sidecar), Policy::Always);
    }
}
