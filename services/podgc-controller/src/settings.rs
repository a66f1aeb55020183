//! The settings of the podgc-controller.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;
use setpoint_host::settings::first_broken;

/// Thresholds of the podgc-controller's deletions; the defaults are upstream's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Collection {
    /// Number of ended Pods that are kept, the newest ones; 0 for all.
    pub terminated_pod_threshold: usize,
    /// Interval at which ended Pods are counted; at least 100ms.
    #[serde(with = "DurationText")]
    pub check_period: Duration,
    /// Time for which a node must be missing before its Pods are deleted.
    #[serde(with = "DurationText")]
    pub quarantine: Duration,
}

impl Default for Collection {
    fn default() -> Self {
        Self {
            terminated_pod_threshold: 12_500,
            check_period: Duration::from_secs(20),
            quarantine: Duration::from_secs(40),
        }
    }
}

impl Collection {
    /// The shortest interval: all Pods are looked at in each.
    const SHORTEST: Duration = Duration::from_millis(100);
}

impl setpoint_host::Settings for Collection {
    fn validate(&self) -> Result<(), String> {
        let long_enough = self.check_period >= Self::SHORTEST;
        first_broken(&[(long_enough, "check_period must be at least 100ms")])
    }
}
