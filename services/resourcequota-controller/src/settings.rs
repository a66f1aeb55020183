//! The settings of the resourcequota-controller.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;
use setpoint_host::settings::first_broken;

/// The interval of the resourcequota-controller's counts without a change; the default is upstream's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Counting {
    /// Interval at which all quotas are counted without a change; at least 1s.
    #[serde(with = "DurationText")]
    pub sync_period: Duration,
}

impl Default for Counting {
    fn default() -> Self {
        Self {
            sync_period: Duration::from_secs(5 * 60),
        }
    }
}

impl Counting {
    /// The shortest interval: all objects that quotas measure are read in each.
    const SHORTEST: Duration = Duration::from_secs(1);
}

impl setpoint_host::Settings for Counting {
    fn validate(&self) -> Result<(), String> {
        let long_enough = self.sync_period >= Self::SHORTEST;
        first_broken(&[(long_enough, "sync_period must be at least 1s")])
    }
}
