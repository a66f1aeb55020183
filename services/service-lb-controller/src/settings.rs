//! The settings of the service-lb-controller.

use std::collections::BTreeSet;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::settings::first_broken;

/// Addresses of Services of the type LoadBalancer. For clusters whose nodes have addresses that clients reach.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Balancing {
    /// Give Services of the type LoadBalancer the addresses of nodes. Without it, they stay pending.
    ///
    /// Services that have addresses when this is switched off keep them, and the finalizer that waits for their
    /// removal.
    pub enabled: bool,
    /// Addresses to give instead of those of nodes, at which the proxies of all nodes accept connections. None of them
    /// may be a loopback address.
    pub addresses: BTreeSet<IpAddr>,
}

impl setpoint_host::Settings for Balancing {
    fn validate(&self) -> Result<(), String> {
        let can_be_reached = |ip: &IpAddr| !ip.is_loopback() && !ip.is_unspecified();
        let reached = self.addresses.iter().all(can_be_reached);
        let problem = "addresses must not have loopback or unspecified addresses";
        first_broken(&[(reached, problem)])
    }
}
