//! What can be set.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_host as host;
use setpoint_machinery::queue::Limiter;
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
    /// How long a failing one rests.
    pub limiter: Limiter,
    /// How often all are looked at without a reason; zero for never.
    #[serde(with = "host::duration")]
    pub resync: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gateway: gateway::Settings::default(),
            election: election::Settings::default(),
            workers: 8,
            limiter: Limiter::default(),
            resync: Duration::from_secs(600),
        }
    }
}

impl host::Settings for Settings {
    fn describe() -> &'static [(&'static str, &'static str)] {
        &[
            ("workers", "Deployments worked on at once"),
            (
                "limiter",
                "How long a failing one rests: exponential or fast-slow",
            ),
            (
                "resync",
                "How often all are looked at without a reason; 0s for never",
            ),
        ]
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
