//! What can be set.

use serde::{Deserialize, Serialize};
use setpoint_controller::{client, election};

/// Settings of the scheduler.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How to reach the gateway.
    pub gateway: client::Settings,
    /// How the leader is found.
    pub election: election::Settings,
    /// Pods that name another scheduler are left alone.
    pub scheduler_name: String,
    /// How many Pods one round decides on.
    pub batch: usize,
    /// Bindings under way at once.
    pub concurrency: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gateway: client::Settings::default(),
            election: election::Settings::default(),
            scheduler_name: "default-scheduler".to_owned(),
            batch: 256,
            concurrency: 32,
        }
    }
}

impl setpoint_host::Settings for Settings {
    fn describe() -> &'static [(&'static str, &'static str)] {
        &[
            (
                "scheduler_name",
                "Pods that name another scheduler are left alone",
            ),
            ("batch", "How many Pods one round decides on"),
            ("concurrency", "How many bindings are under way at once"),
        ]
    }

    fn validate(&self) -> Result<(), String> {
        if self.batch == 0 || self.concurrency == 0 {
            return Err("batch and concurrency must be at least 1".to_owned());
        }
        self.gateway.validate().map_err(|error| error.to_string())?;
        self.election.validate().map_err(|error| error.to_string())
    }
}
