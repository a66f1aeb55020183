//! The settings of the endpointslice-controller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_model::Cidr;
use setpoint_model::ip::loopback_range;

/// Addresses that the endpointslice-controller takes for endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Addresses {
    /// Loopback range whose addresses endpoints may have; empty for none, as in Kubernetes. The gateways must have the
    /// same.
    pub endpoint_loopback_range: String,
}

impl Addresses {
    /// Returns the loopback range.
    ///
    /// # Errors
    /// If it is wrong.
    pub fn loopback(&self) -> Result<Option<Cidr>, String> {
        let range = loopback_range(&self.endpoint_loopback_range);
        range.map_err(|error| format!("endpoint_loopback_range: {error}"))
    }
}

impl setpoint_host::Settings for Addresses {
    fn validate(&self) -> Result<(), String> {
        self.loopback().map(drop)
    }
}
