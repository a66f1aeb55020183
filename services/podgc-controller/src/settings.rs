//! The settings of the podgc-controller.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_host::duration;

/// The settings of the collection; the defaults are upstream's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Collection {
    /// The number of ended Pods that are kept; 0 for all.
    pub terminated_pod_threshold: usize,
    /// The interval at which ended Pods are counted.
    #[serde(with = "duration")]
    pub check_period: Duration,
    /// The time for which a node must be missing before its Pods are deleted.
    #[serde(with = "duration")]
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

    /// Checks the settings.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn validate(&self) -> Result<(), String> {
        match self.check_period >= Self::SHORTEST {
            true => Ok(()),
            false => Err("check_period must be at least 100ms".to_owned()),
        }
    }
}

/// The descriptions of [`Collection`] for `--help`, as the table of this name.
#[macro_export]
macro_rules! describe_collection {
    ($table:literal) => {
        [
            (
                concat!($table, ".terminated_pod_threshold"),
                "Number of ended Pods that are kept, the newest ones; 0 for all",
            ),
            (
                concat!($table, ".check_period"),
                "Interval at which ended Pods are counted; at least 100ms",
            ),
            (
                concat!($table, ".quarantine"),
                "Time for which a node must be missing before its Pods are deleted",
            ),
        ]
    };
}
