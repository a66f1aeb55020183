//! The settings of the node-lifecycle-controller.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;
use setpoint_host::settings::first_broken;

/// Checks of nodes by the node-lifecycle-controller. The grace period must be several times as long as `heartbeat` of
/// the node agents. The defaults are upstream's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Lifecycle {
    /// Interval at which nodes are judged; at least 100ms.
    #[serde(with = "DurationText")]
    pub monitor_period: Duration,
    /// Time without a renewal of its Lease or status after which a node is not ready.
    #[serde(with = "DurationText")]
    pub monitor_grace_period: Duration,
    /// The same for a node that has never posted a status.
    #[serde(with = "DurationText")]
    pub startup_grace_period: Duration,
    /// Number of nodes of a zone that are tainted NoExecute in a second.
    pub eviction_rate: f64,
    /// The same for a large zone of which many nodes are not ready; none in a small one.
    pub secondary_eviction_rate: f64,
    /// Part of the nodes of a zone that are not ready from which the secondary rate applies.
    pub unhealthy_zone_threshold: f64,
    /// Number of nodes above which a zone is large.
    pub large_cluster_size: usize,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self {
            monitor_period: Duration::from_secs(5),
            monitor_grace_period: Duration::from_secs(50),
            startup_grace_period: Duration::from_secs(60),
            eviction_rate: 0.1,
            secondary_eviction_rate: 0.01,
            unhealthy_zone_threshold: 0.55,
            large_cluster_size: 50,
        }
    }
}

impl Lifecycle {
    /// The shortest interval: all nodes are looked at in each.
    const SHORTEST: Duration = Duration::from_millis(100);
}

impl setpoint_host::Settings for Lifecycle {
    fn validate(&self) -> Result<(), String> {
        let is_rate = |rate: f64| (0.0..=f64::MAX).contains(&rate);
        first_broken(&[
            (
                self.monitor_period >= Self::SHORTEST,
                "monitor_period must be at least 100ms",
            ),
            (
                self.monitor_grace_period > self.monitor_period,
                "monitor_grace_period must be longer than monitor_period",
            ),
            (
                self.startup_grace_period > self.monitor_period,
                "startup_grace_period must be longer than monitor_period",
            ),
            (
                is_rate(self.eviction_rate) && is_rate(self.secondary_eviction_rate),
                "eviction rates must not be negative",
            ),
            (
                (0.0..=1.0).contains(&self.unhealthy_zone_threshold),
                "unhealthy_zone_threshold must be between 0 and 1",
            ),
        ])
    }
}

#[cfg(test)]
mod tests {
    use setpoint_host::Settings as _;

    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused_with_the_reason() {
        type Change = fn(&mut Lifecycle);
        let validate = |change: Change| {
            let mut settings = Lifecycle::default();
            change(&mut settings);
            settings.validate()
        };
        assert_eq!(validate(|_| {}), Ok(()));
        let refused: [(Change, &str); 5] = [
            (
                |settings| settings.monitor_period = Duration::ZERO,
                "monitor_period must be at least 100ms",
            ),
            (
                |settings| settings.monitor_grace_period = settings.monitor_period,
                "monitor_grace_period must be longer than monitor_period",
            ),
            (
                |settings| settings.startup_grace_period = Duration::ZERO,
                "startup_grace_period must be longer than monitor_period",
            ),
            (
                |settings| settings.eviction_rate = f64::NAN,
                "eviction rates must not be negative",
            ),
            (
                |settings| settings.unhealthy_zone_threshold = 1.5,
                "unhealthy_zone_threshold must be between 0 and 1",
            ),
        ];
        for (change, why) in refused {
            assert_eq!(validate(change), Err(why.to_owned()));
        }
    }
}
