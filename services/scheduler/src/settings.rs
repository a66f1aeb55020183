//! The scheduler's settings.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_controller::queue::Limiter;
use setpoint_controller::{client, election, runtime};

use crate::profile::{self, Profiles};

/// Settings of the scheduler.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The connection to the gateway.
    pub gateway: client::Settings,
    /// The election of the leader.
    pub election: election::Settings,
    /// The profiles.
    pub profiles: Vec<profile::Settings>,
    /// The maximum number of Pods of a scheduling cycle.
    pub batch: usize,
    /// The maximum number of concurrent bindings.
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
    fn describe() -> &'static [(&'static str, &'static str)] {
        &[
            (
                "profiles",
                "Plugins and their arguments for the Pods of each schedulerName, as in a KubeSchedulerConfiguration",
            ),
            ("batch", "Maximum number of Pods of a scheduling cycle"),
            ("concurrency", "Maximum number of concurrent bindings"),
        ]
    }

    fn validate(&self) -> Result<(), String> {
        if self.batch == 0 || self.concurrency == 0 {
            return Err("batch and concurrency must be at least 1".to_owned());
        }
        Profiles::of(&self.profiles)?;
        self.gateway.validate().map_err(|error| error.to_string())?;
        self.election.validate().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_description() {
        assert!(setpoint_host::settings::undescribed::<Settings>().is_empty());
    }
}
