//! The settings of the back end of user space.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;
use setpoint_host::settings::first_broken;

/// Limits of the back end of user space.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum number of forwarded connections of TCP; further ones are reset. Each takes two open files, and up to
    /// four more while bytes are under way.
    pub connections: usize,
    /// Time for an endpoint to accept a connection. Then another one is tried, four at most.
    #[serde(with = "DurationText")]
    pub connect_timeout: Duration,
    /// Maximum number of flows of UDP of each address and port of a Service. The one that was not used for longest ends
    /// for a new one.
    pub flows: usize,
    /// Time after which an idle flow of UDP ends.
    #[serde(with = "DurationText")]
    pub flow_timeout: Duration,
    /// Time that open connections of TCP have to end when the process is stopped; new ones are refused meanwhile.
    #[serde(with = "DurationText")]
    pub grace_period: Duration,
    /// Maximum number of clients whose endpoint is remembered, for each port of a Service with session affinity.
    pub affinity_clients: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connect_timeout: Duration::from_secs(1),
            flows: 1024,
            flow_timeout: Duration::from_secs(30),
            grace_period: Duration::from_secs(5),
            affinity_clients: 10_000,
        }
    }
}

impl Limits {
    /// Checks that no limit is zero.
    ///
    /// # Errors
    /// The reason, in one line.
    pub fn validate(&self) -> Result<(), String> {
        let numbers = self.connections > 0 && self.flows > 0 && self.affinity_clients > 0;
        let times = !self.connect_timeout.is_zero() && !self.flow_timeout.is_zero();
        first_broken(&[(
            numbers && times,
            "the settings of userspace must be positive",
        )])
    }
}
