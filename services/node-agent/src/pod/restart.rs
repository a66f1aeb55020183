//! The restart policy of containers and its backoff.

#![warn(clippy::arithmetic_side_effects)]

use std::time::{Duration, Instant};

use jiff::Timestamp;
use setpoint_model::pod::is_sidecar;
use setpoint_proto::core::{Container, ContainerRestartRule, PodSpec};

/// Backoff before the second restart; doubled by each later one.
const INITIAL_BACKOFF: Duration = Duration::from_secs(10);
/// Maximum backoff.
pub const MAX_BACKOFF: Duration = Duration::from_secs(300);
/// A container that ran for this long resets its backoff.
const RESET_AFTER: Duration = Duration::from_secs(600);

/// The exits of a container that are followed by a restart (`restartPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartPolicy {
    /// All exits.
    Always,
    /// Exits with a code other than 0.
    OnFailure,
    /// No exit.
    Never,
}

impl RestartPolicy {
    /// Returns the policy of a container: its own, else that of its Pod.
    pub fn of(spec: &PodSpec, container: &Container) -> Self {
        let own = container.restart_policy.as_deref();
        match own.unwrap_or(&spec.restart_policy) {
            "OnFailure" => Self::OnFailure,
            "Never" => Self::Never,
            _ => Self::Always,
        }
    }
}

/// The action of a rule that restarts all containers of a Pod (KEP-5532).
const RESTART_ALL: &str = "RestartAllContainers";

/// Returns whether a container is restarted after exiting with this code: by the first of its rules that names the
/// code, else by its policy. Init containers run to completion: they end with success, unless they are sidecars.
pub fn restarts(spec: &PodSpec, container: &Container, code: i32) -> bool {
    let mut init = spec.init_containers.iter();
    let is_init = init.any(|init| init.name == container.name);
    if is_init && code == 0 && !is_sidecar(container) {
        return false;
    }
    let action = action(container, code);
    match RestartPolicy::of(spec, container) {
        _ if matches!(action, Some("Restart" | RESTART_ALL)) => true,
        RestartPolicy::Always => true,
        RestartPolicy::OnFailure => code != 0,
        RestartPolicy::Never => false,
    }
}

/// Returns whether all containers of a Pod are restarted when a container exits with this code.
pub fn restarts_all(container: &Container, code: i32) -> bool {
    action(container, code) == Some(RESTART_ALL)
}

/// Returns whether an exit of a container of a Pod can restart all of them.
pub fn may_restart_all(spec: &PodSpec) -> bool {
    let mut containers = spec.init_containers.iter().chain(&spec.containers);
    containers.any(|container| {
        let mut rules = container.restart_policy_rules.iter();
        rules.any(|rule| rule.action == RESTART_ALL)
    })
}

/// Returns the action of the first rule of a container that names an exit code.
fn action(container: &Container, code: i32) -> Option<&str> {
    let mut rules = container.restart_policy_rules.iter();
    let rule = rules.find(|rule| names(rule, code))?;
    Some(&rule.action)
}

fn names(rule: &ContainerRestartRule, code: i32) -> bool {
    let codes = rule.exit_codes.as_ref();
    codes.is_some_and(|codes| match codes.operator.as_str() {
        "In" => codes.values.contains(&code),
        "NotIn" => !codes.values.contains(&code),
        _ => false,
    })
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
    use setpoint_proto::core::ContainerRestartRuleOnExitCodes;

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

    /// Returns whether containers of Pods with each policy are restarted after these codes.
    fn matrix(container: &Container, is_init: bool) -> [[bool; 2]; 3] {
        ["Always", "OnFailure", "Never"].map(|policy| {
            let mut spec = PodSpec {
                restart_policy: policy.to_owned(),
                ..PodSpec::default()
            };
            if is_init {
                spec.init_containers.push(container.clone());
            }
            [0, 1].map(|code| restarts(&spec, container, code))
        })
    }

    fn with_policy(policy: &str) -> Container {
        Container {
            restart_policy: Some(policy.into()),
            ..Container::default()
        }
    }

    /// Checks N1.
    #[test]
    fn the_restart_policy_decides_which_exit_codes_are_restarted() {
        let expected = [[true, true], [false, true], [false, false]];
        assert_eq!(matrix(&Container::default(), false), expected);
        for (policy, expected) in ["Always", "OnFailure", "Never"].iter().zip(expected) {
            assert_eq!(
                matrix(&with_policy(policy), false),
                [expected; 3],
                "{policy}"
            );
        }
    }

    #[test]
    fn an_init_container_is_restarted_until_it_succeeds_and_a_sidecar_always() {
        let plain = matrix(&Container::default(), true);
        assert_eq!(plain, [[false, true], [false, true], [false, false]]);
        assert_eq!(matrix(&with_policy("Never"), true), [[false, false]; 3]);
        assert_eq!(matrix(&with_policy("OnFailure"), true), [[false, true]; 3]);
        assert_eq!(matrix(&with_policy("Always"), true), [[true, true]; 3]);
    }

    #[test]
    fn the_first_rule_that_names_the_exit_code_precedes_the_policy() {
        let rule = |action: &str, operator: &str, values: &[i32]| ContainerRestartRule {
            action: action.into(),
            exit_codes: Some(ContainerRestartRuleOnExitCodes {
                operator: operator.into(),
                values: values.to_vec(),
            }),
        };
        let restarts = |rules: &[ContainerRestartRule]| {
            let mut container = with_policy("Never");
            container.restart_policy_rules = rules.to_vec();
            [0, 1, 42].map(|code| super::restarts(&PodSpec::default(), &container, code))
        };
        let (listed, others) = (
            rule("Restart", "In", &[42]),
            rule("Restart", "NotIn", &[0, 42]),
        );
        assert_eq!(
            restarts(std::slice::from_ref(&listed)),
            [false, false, true]
        );
        assert_eq!(restarts(&[others]), [false, true, false]);
        let unknown = rule("Explode", "In", &[42]);
        assert_eq!(restarts(&[unknown, listed]), [false, false, false]);
        let all = rule(RESTART_ALL, "In", &[42]);
        assert_eq!(restarts(&[all]), [false, false, true]);
    }
}
