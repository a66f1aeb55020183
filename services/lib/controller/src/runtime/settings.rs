//! The settings of any controller.

use std::time::Duration;

use jiff::fmt::serde::unsigned_duration::friendly::compact::required as humane;
use serde::{Deserialize, Serialize};

use crate::queue::Limiter;
use crate::{client, election};

/// Settings of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The connection to the gateway.
    pub gateway: client::Settings,
    /// The election of the leader.
    pub election: election::Settings,
    /// The maximum number of concurrent reconciles.
    pub workers: usize,
    /// The delays of keys that fail.
    pub limiter: Limiter,
    /// The interval at which all objects are reconciled without a change; zero for never.
    #[serde(with = "humane")]
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
    /// The descriptions of the settings for `--help`.
    pub const DESCRIBE: &[(&str, &str); 3] = &[
        ("workers", "Maximum number of concurrent reconciles"),
        (
            "limiter",
            "Delays of failing keys: exponential or fast-slow",
        ),
        (
            "resync",
            "Interval of reconciles of all objects without a change; 0s for never",
        ),
    ];

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
    fn describe() -> &'static [(&'static str, &'static str)] {
        Self::DESCRIBE
    }

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
