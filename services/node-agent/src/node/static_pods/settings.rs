//! The settings of static Pods.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;

/// Static Pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Directory of the manifests of Pods that the node runs by itself, as the kubelet's `staticPodPath`; empty for
    /// none.
    pub directory: PathBuf,
    /// Interval in which the directory is read.
    #[serde(with = "DurationText")]
    pub period: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            directory: PathBuf::new(),
            period: Duration::from_secs(1),
        }
    }
}

impl Settings {
    /// Returns whether there may be static Pods.
    pub fn is_on(&self) -> bool {
        !self.directory.as_os_str().is_empty()
    }
}
