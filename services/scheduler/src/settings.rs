//! The scheduler's settings.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_controller::queue::Limiter;
use setpoint_controller::{client, election, runtime};
use setpoint_host::settings::first_broken;

use crate::profile::{self, Profiles};

/// Settings of the scheduler.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Connection to the gateway.
    pub gateway: client::Settings,
    /// Leader election. A standby takes over `lease_duration` after a crash of the leader, or at once after an orderly
    /// stop.
    pub election: election::Settings,
    /// Plugins and their arguments for the Pods of each schedulerName, as in a KubeSchedulerConfiguration.
    ///
    /// Each profile schedules the Pods with its schedulerName; other Pods are left to other schedulers. A profile names
    /// what differs from upstream's defaults: plugins to enable or disable at the extension points multiPoint, filter,
    /// postFilter and score, with the weights of scores, and arguments of NodeResourcesFit, PodTopologySpread,
    /// InterPodAffinity and NodeAffinity. The default is one profile for `default-scheduler`. Another one that fills
    /// nodes before it uses others:
    ///
    /// ```toml
    /// [[profiles]]
    /// schedulerName = "bin-packing"
    ///
    /// [profiles.plugins.score]
    /// disabled = [{ name = "PodTopologySpread" }, { name = "NodeResourcesBalancedAllocation" }]
    /// enabled = [{ name = "NodeResourcesFit", weight = 5 }]
    ///
    /// [[profiles.pluginConfig]]
    /// name = "NodeResourcesFit"
    ///
    /// [profiles.pluginConfig.args.scoringStrategy]
    /// type = "MostAllocated"
    /// resources = [{ name = "cpu", weight = 1 }, { name = "memory", weight = 1 }]
    /// ```
    #[schemars(with = "Vec<serde_json::Value>")]
    pub profiles: Vec<profile::Settings>,
    /// Maximum number of Pods of a scheduling cycle.
    pub batch: usize,
    /// Maximum number of concurrent bindings.
    pub concurrency: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gateway: client::Settings::default(),
            election: election::Settings::default(),
            profiles: vec![profile::Settings::default()],
            batch: 256,
            concurrency: 32,
        }
    }
}

impl Settings {
    /// Returns the settings of the controller that schedules Pods.
    pub fn controller(self) -> runtime::Settings {
        runtime::Settings {
            gateway: self.gateway,
            election: self.election,
            workers: self.concurrency,
            // A Pod whose write failed is delayed by at most 10 s, as in upstream.
            limiter: Limiter::FastSlow,
            resync: Duration::ZERO,
        }
    }
}

impl setpoint_host::Settings for Settings {
    fn validate(&self) -> Result<(), String> {
        let works = self.batch > 0 && self.concurrency > 0;
        first_broken(&[(works, "batch and concurrency must be at least 1")])?;
        Profiles::of(&self.profiles)?;
        self.gateway.validate().map_err(|error| error.to_string())?;
        self.election.validate().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;

    #[test]
    fn the_settings_file_has_every_setting_with_its_default() {
        let template = setpoint_host::settings::template::<Settings>("scheduler", &());
        expect_file!["../../../deploy/config/scheduler.toml"].assert_eq(&template);
    }
}
