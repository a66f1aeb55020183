//! What can be set.

use serde::{Deserialize, Serialize};
use setpoint_host as host;
use setpoint_machinery::{election, gateway};

/// Settings of the deployment-controller.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How to reach the gateway.
    pub gateway: gateway::Settings,
    /// How the leader is found.
    pub election: election::Settings,
    /// Deployments worked on at once.
    pub workers: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gateway: gateway::Settings::default(),
            election: election::Settings::default(),
            workers: 8,
        }
    }
}

impl host::Settings for Settings {
    fn describe() -> &'static [(&'static str, &'static str)] {
        &[("workers", "Deployments worked on at once")]
    }

    fn validate(&self) -> Result<(), String> {
        self.gateway.validate().map_err(|error| error.to_string())?;
        self.election
            .validate()
            .map_err(|error| error.to_string())?;
        match self.workers {
            0 => Err("workers must be at least 1".to_owned()),
            _ => Ok(()),
        }
    }
}
