//! Limits: stabilization windows, policies, minimum and maximum.
#![warn(clippy::arithmetic_side_effects)]

use std::time::Duration;

use jiff::Timestamp;
use setpoint_model::time;

use crate::{Behavior, History, Policy, PolicyKind, Rules, Select};

/// Everything that limits a change of the replicas.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// The replicas that the target is set to.
    pub current: i32,
    /// The lower bound.
    pub min: i32,
    /// The upper bound.
    pub max: i32,
    /// The rules; `None` for those of autoscaling/v1.
    pub behavior: Option<&'a Behavior>,
    /// The window of rules for fewer replicas that have none of their own.
    pub window: Duration,
    /// Earlier recommendations and changes.
    pub history: &'a History,
    /// The time.
    pub now: Timestamp,
}

/// A recommendation after stabilization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stabilized {
    /// The replicas.
    pub replicas: i32,
    /// The reason of the condition `AbleToScale`.
    pub reason: &'static str,
    /// Its message.
    pub message: &'static str,
}

/// Replicas within all limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited {
    /// The replicas.
    pub replicas: i32,
    /// Whether they are not those that were recommended.
    pub limited: bool,
    /// The reason of the condition `ScalingLimited`.
    pub reason: &'static str,
    /// Its message.
    pub message: &'static str,
}

const STABILIZED_UP: (&str, &str) = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const STABILIZED_DOWN: (&str, &str) = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);
const READY: (&str, &str) = ("ReadyForNewScale", "recommended size matches current size");

type Text = (&'static str, &'static str);

const WITHIN: Text = (
    "DesiredWithinRange",
    "the desired count is within the acceptable range",
);
const TOO_MANY: Text = (
    "TooManyReplicas",
    "the desired replica count is more than the maximum replica count",
);
const TOO_FEW: Text = (
    "TooFewReplicas",
    "the desired replica count is less than the minimum replica count",
);
const UP_LIMIT: Text = (
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
);
const DOWN_LIMIT: Text = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
);

impl Limits<'_> {
    /// Returns how long recommendations count.
    pub fn longest_window(&self) -> Duration {
        match self.behavior {
            None => self.window,
            Some(behavior) => self.windows(behavior).0.max(self.windows(behavior).1),
        }
    }

    /// Returns the windows of more and of fewer replicas.
    fn windows(&self, behavior: &Behavior) -> (Duration, Duration) {
        let up = behavior.up.window.unwrap_or_default();
        (up, behavior.down.window.unwrap_or(self.window))
    }

    /// Applies the stabilization windows to a recommendation: fewer replicas than were recommended within the window of
    /// fewer are not set, nor more than were recommended within the window of more.
    pub fn stabilize(&self, desired: i32) -> Stabilized {
        let (replicas, (reason, message)) = match self.behavior {
            None => (self.largest_recent(desired), STABILIZED_DOWN),
            Some(behavior) => (
                self.between_recent(desired, behavior),
                match desired >= self.current {
                    true => STABILIZED_UP,
                    false => STABILIZED_DOWN,
                },
            ),
        };
        let (reason, message) = match replicas == desired {
            true => READY,
            false => (reason, message),
        };
        Stabilized {
            replicas,
            reason,
            message,
        }
    }

    fn largest_recent(&self, desired: i32) -> i32 {
        let recent = self.history.recommendations();
        let recent = recent.filter(|one| time::after(one.at, self.window) >= self.now);
        recent.map(|one| one.replicas).fold(desired, i32::max)
    }

    /// Returns the current replicas, or the nearest between the smallest and the largest of the recent recommendations.
    fn between_recent(&self, desired: i32, behavior: &Behavior) -> i32 {
        let (up, down) = self.windows(behavior);
        let recent = |window: Duration| {
            let recent = self.history.recommendations();
            let recent = recent.filter(move |one| time::after(one.at, window) > self.now);
            recent.map(|one| one.replicas)
        };
        let smallest = recent(up).fold(desired, i32::min);
        let largest = recent(down).fold(desired, i32::max);
        self.current.max(smallest).min(largest)
    }

    /// Applies the policies, the minimum and the maximum.
    pub fn limit(&self, desired: i32) -> Limited {
        let (replicas, (reason, message)) = match self.behavior {
            None => self.by_default(desired),
            Some(behavior) => self.by_rules(desired, behavior),
        };
        Limited {
            replicas,
            limited: replicas != desired,
            reason,
            message,
        }
    }

    /// Limits replicas by the rules of autoscaling/v1: twice as many, and at least 4, at a time.
    fn by_default(&self, desired: i32) -> (i32, Text) {
        let fastest = self.current.saturating_mul(2).max(4);
        let (most, text) = match self.max > fastest {
            true => (fastest, UP_LIMIT),
            false => (self.max, TOO_MANY),
        };
        if desired < self.min {
            (self.min, TOO_FEW)
        } else if desired > most {
            (most, text)
        } else {
            (desired, WITHIN)
        }
    }

    fn by_rules(&self, desired: i32, behavior: &Behavior) -> (i32, Text) {
        if desired > self.current {
            // A policy that was lowered does not revert changes of its period.
            let fastest = self.fastest_up(&behavior.up).max(self.current);
            let (most, text) = match self.max > fastest {
                true => (fastest, UP_LIMIT),
                false => (self.max, TOO_MANY),
            };
            if desired > most {
                return (most, text);
            }
        } else if desired < self.current {
            let fastest = self.fastest_down(&behavior.down).min(self.current);
            let (least, text) = match self.min < fastest {
                true => (fastest, DOWN_LIMIT),
                false => (self.min, TOO_FEW),
            };
            if desired < least {
                return (least, text);
            }
        }
        (desired, WITHIN)
    }

    /// Returns the most replicas that the policies permit now.
    fn fastest_up(&self, rules: &Rules) -> i32 {
        let permitted = rules.policies.iter().map(|policy| {
            let start = self.start_of(policy);
            match policy.kind {
                PolicyKind::Pods => start.saturating_add(policy.value),
                // Rounded up, so that one replica can become two.
                PolicyKind::Percent => (f64::from(start) * (1.0 + share(policy))).ceil() as i32,
            }
        });
        match rules.select {
            Select::Disabled => self.current,
            Select::Min => permitted.min().unwrap_or(i32::MAX),
            Select::Max => permitted.max().unwrap_or(i32::MIN),
        }
    }

    /// Returns the fewest replicas that the policies permit now.
    fn fastest_down(&self, rules: &Rules) -> i32 {
        let permitted = rules.policies.iter().map(|policy| {
            let start = self.start_of(policy);
            match policy.kind {
                PolicyKind::Pods => start.saturating_sub(policy.value),
                PolicyKind::Percent => (f64::from(start) * (1.0 - share(policy))) as i32,
            }
        });
        match rules.select {
            Select::Disabled => self.current,
            Select::Min => permitted.max().unwrap_or(i32::MIN),
            Select::Max => permitted.min().unwrap_or(i32::MAX),
        }
    }

    fn start_of(&self, policy: &Policy) -> i32 {
        let Self {
            history,
            current,
            now,
            ..
        } = self;
        history.at_start_of(policy.period, *current, *now)
    }
}

fn share(policy: &Policy) -> f64 {
    f64::from(policy.value) / 100.0
}
