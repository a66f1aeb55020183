//! The restart policy of containers and its backoff.

#![warn(clippy::arithmetic_side_effects)]

use std::time::{Duration, Instant};

use jiff::Timestamp;
use setpoint_proto::core::{Container, PodSpec};

/// Backoff before the second restart; doubled by each later one.
const INITIAL_BACKOFF: Duration = Duration::from_secs(10);
/// Maximum backoff.
pub const MAX_BACKOFF: Duration = Duration::from_secs(300);
/// A container that ran for this long resets its backoff.
const RESET_AFTER: Duration = Duration::from_secs(600);

/// Which exits of a container are followed by a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartPolicy {
    /// All.
    Always,
    /// Those with a code other than 0.
    OnFailure,
    /// None.
    Never,
}

impl RestartPolicy {
    /// Returns the policy of a Pod's main containers.
    pub fn of(spec: &PodSpec) -> Self {
        match spec.restart_policy.as_str() {
            "OnFailure" => Self::OnFailure,
            "Never" => Self::Never,
            _ => Self::Always,
        }
    }

    /// Returns the policy of an init container. Init containers run to completion, so `Always` means until success,
    /// unless the container is a sidecar.
    pub fn of_init(spec: &PodSpec, container: &Container) -> Self {
        match Self::of(spec) {
            _ if is_sidecar(container) => Self::Always,
            Self::Always => Self::OnFailure,
            other => other,
        }
    }

    /// Returns whether a container is restarted after exiting with this code.
    pub fn restarts(self, code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => code != 0,
            Self::Never => false,
        }
    }
}

/// Returns whether an init container is a sidecar: started in order with the init containers, but kept running beside
/// the main ones.
pub fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// The end of an attempt, as far as a restart depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ended {
    /// Exit code.
    pub code: i32,
    /// Start time.
    pub started: Timestamp,
    /// End time.
    pub finished: Timestamp,
    /// Monotonic time at which this process observed the end; `None` if it ended while no agent was running.
    pub observed: Option<Instant>,
    /// Backoff that was set when the attempt was started.
    pub backoff: Duration,
}

impl Ended {
    /// Returns the backoff after this attempt: the one that was set, or zero if it ran long enough to reset it.
    pub fn effective_backoff(&self) -> Duration {
        let ran = Duration::try_from(self.finished.duration_since(self.started));
        if ran.unwrap_or_default() >= RESET_AFTER {
            Duration::ZERO
        } else {
            self.backoff
        }
    }

    /// Returns what is left of the backoff at `now`, which is `instant` in monotonic time.
    ///
    /// The larger elapsed time of the two clocks counts: only the wall clock covers the time before this process
    /// started, and only the monotonic clock is unaffected when the wall clock is set back.
    pub fn remaining_backoff(&self, now: Timestamp, instant: Instant) -> Duration {
        let passed = Duration::try_from(now.duration_since(self.finished)).unwrap_or_default();
        let observed = self.observed.unwrap_or(instant);
        let passed = passed.max(instant.saturating_duration_since(observed));
        self.effective_backoff().saturating_sub(passed)
    }

    /// Returns the backoff to set for the next attempt.
    pub fn next_backoff(&self) -> Duration {
        match self.effective_backoff() {
            Duration::ZERO => INITIAL_BACKOFF,
            backoff => backoff.saturating_mul(2).min(MAX_BACKOFF),
        }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "only constants are used")]
mod tests {
    use super::*;

    fn ended(ran: i64, backoff: u64) -> Ended {
        Ended {
            code: 1,
            started: Timestamp::from_second(1000).unwrap(),
            finished: Timestamp::from_second(1000_i64.saturating_add(ran)).unwrap(),
            observed: None,
            backoff: Duration::from_secs(backoff),
        }
    }

    /// Checks N1.
    #[test]
    fn the_first_restart_has_no_backoff_and_later_ones_double_it_up_to_five_minutes() {
        let mut attempt = ended(1, 0);
        let mut backoffs = Vec::new();
        for _ in 0..8 {
            backoffs.push(attempt.effective_backoff().as_secs());
            attempt = Ended {
                backoff: attempt.next_backoff(),
                ..attempt
            };
        }
        assert_eq!(backoffs, [0, 10, 20, 40, 80, 160, 300, 300]);
    }

    /// Checks N1.
    #[test]
    fn ten_minutes_of_running_reset_the_backoff() {
        assert_eq!(ended(599, 300).effective_backoff(), MAX_BACKOFF);
        assert_eq!(ended(600, 300).effective_backoff(), Duration::ZERO);
        assert_eq!(ended(600, 300).next_backoff(), INITIAL_BACKOFF);
    }

    #[test]
    fn the_backoff_counts_from_the_end_of_the_attempt() {
        let attempt = ended(5, 40);
        let wait = |second| {
            let now = Timestamp::from_second(second).unwrap();
            attempt.remaining_backoff(now, Instant::now()).as_secs()
        };
        assert_eq!(
            [wait(1005), wait(1030), wait(1045), wait(9999)],
            [40, 15, 0, 0]
        );
    }

    /// Checks F41.
    #[test]
    fn a_clock_that_is_set_back_extends_no_backoff() {
        let observed = Instant::now();
        let attempt = Ended {
            observed: Some(observed),
            ..ended(5, 40)
        };
        let an_hour_back = attempt.finished - Duration::from_secs(3600);
        let wait = |seconds| {
            let instant = observed + Duration::from_secs(seconds);
            attempt.remaining_backoff(an_hour_back, instant).as_secs()
        };
        assert_eq!([wait(0), wait(25), wait(40)], [40, 15, 0]);
    }

    /// Checks N1.
    #[test]
    fn the_restart_policy_decides_which_exit_codes_are_restarted() {
        let restarts = |policy: &str, code| {
            let restart_policy = policy.to_owned();
            RestartPolicy::of(&PodSpec {
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
    fn an_init_container_is_restarted_until_it_succeeds_and_a_sidecar_always() {
        let spec = PodSpec {
            restart_policy: "Always".into(),
            ..Default::default()
        };
        let sidecar = Container {
            restart_policy: Some("Always".into()),
            ..Default::default()
        };
        assert_eq!(
            RestartPolicy::of_init(&spec, &Container::default()),
            RestartPolicy::OnFailure
        );
        assert_eq!(
            RestartPolicy::of_init(&spec, &sidecar),
            RestartPolicy::Always
        );
    }
}
