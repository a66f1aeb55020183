//! The settings of any controller.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;

use crate::queue::Limiter;
use crate::{client, election};

/// Settings of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Connection to the gateway.
    pub gateway: client::Settings,
    /// Leader election of each controller. A standby takes over `lease_duration` after a crash of the leader, or at
    /// once after an orderly stop.
    pub election: election::Settings,
    /// Maximum number of concurrent reconciles of each controller.
    pub workers: usize,
    /// Delays of failing keys: exponential or fast-slow.
    pub limiter: Limiter,
    /// Interval of reconciles of all objects without a change; 0s for never.
    #[serde(with = "DurationText")]
    pub resync: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gateway: client::Settings::default(),
            election: election::Settings::default(),
            // Workers mostly wait for the gateway.
            workers: 8,
            limiter: Limiter::default(),
            // A safety net: reconcilers do not depend on it.
            resync: Duration::from_secs(600),
        }
    }
}

impl Settings {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn validate(&self) -> Result<(), Error> {
        self.gateway.validate()?;
        self.election.validate()?;
        match self.workers {
            0 => Err(Error::NoWorkers),
            _ => Ok(()),
        }
    }
}

impl setpoint_host::Settings for Settings {
    fn validate(&self) -> Result<(), String> {
        Self::validate(self).map_err(|error| error.to_string())
    }
}

/// Settings are invalid.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings of the client are invalid.
    #[error(transparent)]
    Gateway(#[from] client::Error),
    /// The settings of the election are invalid.
    #[error(transparent)]
    Election(#[from] election::Error),
    /// There are no workers.
    #[error("workers must be at least 1")]
    NoWorkers,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused_with_the_reason() {
        let why = |settings: Settings| settings.validate().unwrap_err().to_string();
        assert!(Settings::default().validate().is_ok());
        let idle = Settings {
            workers: 0,
            ..Settings::default()
        };
        assert_eq!(why(idle), "workers must be at least 1");
        let nowhere = Settings {
            gateway: client::Settings {
                timeout: Duration::ZERO,
                ..client::Settings::default()
            },
            ..Settings::default()
        };
        assert_eq!(
            why(nowhere),
            "the gateway's timeout must be longer than zero"
        );
    }
}
