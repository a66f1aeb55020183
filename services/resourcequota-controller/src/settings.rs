//! The settings of the resourcequota-controller.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_host::duration;

/// The settings of the count; the default is upstream's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Counting {
    /// The interval at which all quotas are counted without a change.
    #[serde(with = "duration")]
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

    /// Checks the settings.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn validate(&self) -> Result<(), String> {
        match self.sync_period >= Self::SHORTEST {
            true => Ok(()),
            false => Err("sync_period must be at least 1s".to_owned()),
        }
    }
}

/// The descriptions of [`Counting`] for `--help`, as the table of this name.
#[macro_export]
macro_rules! describe_counting {
    ($table:literal) => {
        [(
            concat!($table, ".sync_period"),
            "Interval at which all quotas are counted without a change; at least 1s",
        )]
    };
}
