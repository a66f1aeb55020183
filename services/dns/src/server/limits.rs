//! The limits on connections.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;

/// Limits on connections by TCP.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum number of connections; more wait to be accepted.
    pub connections: usize,
    /// Maximum number of connections of one address; more are closed.
    pub connections_per_client: usize,
    /// Time after which a connection without a complete question is closed.
    #[serde(with = "DurationText")]
    pub idle: Duration,
    /// Time that a client has to take an answer.
    #[serde(with = "DurationText")]
    pub write: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            connections_per_client: 32,
            idle: Duration::from_secs(8),
            write: Duration::from_secs(2),
        }
    }
}
