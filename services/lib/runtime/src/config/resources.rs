//! The limits of containers and Pods.

use serde::{Deserialize, Serialize};
use setpoint_model::quantity::Amount;
use setpoint_proto::core::ResourceRequirements;
use setpoint_proto::meta::Quantity;

/// Resource limits of a container or a Pod; zero for unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Relative CPU share under contention, in thousandths of a core.
    pub millicpu_share: i64,
    /// CPU limit, in thousandths of a core.
    pub millicpu: i64,
    /// Memory limit, in bytes.
    pub memory: i64,
}

impl Limits {
    /// Returns the limits that follow from the requests and limits of a container.
    pub fn of(resources: &ResourceRequirements) -> Self {
        let limit = |name| resources.limits.get(name);
        let amount = |found: Option<&Quantity>| {
            found.and_then(|quantity| Amount::parse(&quantity.string).ok())
        };
        let share = resources.requests.get("cpu").or(limit("cpu"));
        Self {
            millicpu_share: amount(share).map_or(0, Amount::millis),
            millicpu: amount(limit("cpu")).map_or(0, Amount::millis),
            memory: amount(limit("memory")).map_or(0, Amount::value),
        }
    }
}

impl Limits {
    /// Returns the limits, with those of `default` where there are none.
    #[must_use]
    pub fn or(self, default: Self) -> Self {
        let choose = |own: i64, default: i64| if own > 0 { own } else { default };
        Self {
            millicpu_share: choose(self.millicpu_share, default.millicpu_share),
            millicpu: choose(self.millicpu, default.millicpu),
            memory: choose(self.memory, default.memory),
        }
    }

    /// Returns the limits that allow what either of two allows.
    #[must_use]
    pub fn raised_to(self, other: Self) -> Self {
        let larger = |one: i64, other: i64| match one.min(other) {
            ..=0 => 0,
            _ => one.max(other),
        };
        Self {
            millicpu_share: self.millicpu_share.max(other.millicpu_share),
            millicpu: larger(self.millicpu, other.millicpu),
            memory: larger(self.memory, other.memory),
        }
    }
}

/// The limits that a Pod has as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodResources {
    /// The limits of its containers together.
    pub all: Limits,
    /// The limits of containers without limits of their own.
    pub each: Limits,
}

impl PodResources {
    /// Returns what allows all that either of two allows.
    #[must_use]
    pub fn raised_to(self, other: Self) -> Self {
        Self {
            all: self.all.raised_to(other.all),
            each: self.each.raised_to(other.each),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_parsed_and_the_cpu_share_follows_the_request() {
        let mut resources = ResourceRequirements::default();
        let limits = &mut resources.limits;
        limits.insert("cpu".into(), Quantity::new("1500m"));
        limits.insert("memory".into(), Quantity::new("64Mi"));
        let expected = Limits {
            millicpu_share: 1500,
            millicpu: 1500,
            memory: 64 << 20,
        };
        assert_eq!(Limits::of(&resources), expected);
        let requests = &mut resources.requests;
        requests.insert("cpu".into(), Quantity::new("100m"));
        assert_eq!(Limits::of(&resources).millicpu_share, 100);
    }
}
