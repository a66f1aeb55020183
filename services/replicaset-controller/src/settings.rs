//! What can be set.

use serde::{Deserialize, Serialize};
use setpoint_controller::runtime;

/// Settings of the replicaset-controller: those of any controller.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Settings(pub runtime::Settings);

impl setpoint_host::Settings for Settings {
    fn describe() -> &'static [(&'static str, &'static str)] {
        runtime::Settings::DESCRIBE
    }

    fn validate(&self) -> Result<(), String> {
        self.0.validate().map_err(|error| error.to_string())
    }
}
