//! The proxy's settings.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_controller::client;
use setpoint_host::DurationText;
use setpoint_host::settings::{Serving, first_broken};
use setpoint_model::Cidr;
use setpoint_tls::{Credentials, Files};

use crate::nftables::{Answered, Base, Socket, Tools};
use crate::node;
use crate::routes::Kernel;
use crate::userspace::Limits;

/// The longest name of a table.
const NAME_MAX: usize = 64;

/// The back ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackendName {
    /// A table of the kernel.
    #[default]
    Nftables,
    /// Sockets of this process.
    Userspace,
}

/// Settings of the proxy.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Connection to the gateway.
    pub gateway: client::Settings,
    /// Way in which Services carry traffic: nftables, which needs root, or userspace, through sockets of this process,
    /// which is then the child of a small one that restarts it.
    pub backend: BackendName,
    /// Limits of the back end of user space.
    pub userspace: Limits,
    /// Name of the table of nftables, which no other cluster of the machine may have.
    pub table: String,
    /// Names of the nodes whose traffic passes through the network of this process; * for all of the cluster.
    ///
    /// Their endpoints are the local ones, and node ports accept connections at their InternalIPs.
    pub nodes: Vec<String>,
    /// Ranges of the addresses of Services, as the gateways have them. Connections to addresses in them that no Service
    /// has are refused, and do not leave the machine.
    pub service_ranges: Vec<Cidr>,
    /// Addresses at which node ports accept connections, such as 127.0.0.0/8; the InternalIPs of the nodes if there are
    /// none.
    pub node_port_addresses: Vec<Cidr>,
    /// Accept connections to the externalIPs of Services. Whoever may write a Service can then take over any address as
    /// seen from this machine (CVE-2020-8554).
    pub external_ips: bool,
    /// Give all connections to the Service range the source address of the machine. For networks whose replies would
    /// otherwise go to the client directly.
    pub masquerade_all: bool,
    /// Enforce NetworkPolicies on the Pods of the nodes, in the table of that name with `-policies`. With the back end
    /// nftables alone.
    pub network_policies: bool,
    /// Ranges of the addresses of the cluster's Pods. The kernel gets a route to the range of each other node that lies
    /// in one of them, by the InternalIP of the node: for machines of one network, each of which is a node. Connections
    /// from these ranges to others get the source address of the machine. None by default. With the back end nftables
    /// alone.
    pub routed_pod_ranges: Vec<Cidr>,
    /// Answer for all addresses of service_ranges on the networks of this process, by a route in its network namespace,
    /// so that the ranges can be parts of these networks. For a network namespace that nothing else uses, and nftables.
    ///
    /// The process ends when the namespace has lost its networks.
    pub answer_service_ranges: bool,
    /// Period of the check that the table and the route are there.
    #[serde(with = "DurationText")]
    pub sync_period: Duration,
    /// Time that a transaction may take.
    #[serde(with = "DurationText")]
    pub transaction_timeout: Duration,
    /// The program conntrack, and its first arguments. It ends the flows of UDP to endpoints that are gone.
    pub conntrack: Vec<String>,
    /// The program ip, and its first arguments. It makes the routes of answer_service_ranges and routed_pod_ranges.
    pub ip: Vec<String>,
    /// Certificate for clients, if that is another one than the one for connections.
    pub serving: Serving,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gateway: client::Settings::default(),
            backend: BackendName::default(),
            userspace: Limits::default(),
            table: "setpoint".to_owned(),
            nodes: Vec::new(),
            service_ranges: "10.96.0.0/16".parse().into_iter().collect(),
            node_port_addresses: Vec::new(),
            external_ips: false,
            masquerade_all: false,
            network_policies: true,
            routed_pod_ranges: Vec::new(),
            answer_service_ranges: false,
            sync_period: Duration::from_secs(30),
            transaction_timeout: Duration::from_secs(60),
            conntrack: vec!["conntrack".to_owned()],
            ip: vec!["ip".to_owned()],
            serving: Serving::default(),
        }
    }
}

impl Settings {
    /// Returns what the table has for all Services.
    pub fn base(&self) -> Base {
        Base {
            table: self.table.clone(),
            service_range: self.service_ranges.clone(),
            masquerade_all: self.masquerade_all,
            pod_range: self.routed_pod_ranges.clone(),
        }
    }

    /// Returns the name of the table of NetworkPolicies beside a table of Services.
    pub fn policy_table(table: &str) -> String {
        format!("{table}-policies")
    }

    /// Returns what the back end of nftables uses.
    pub fn tools(&self, socket: Socket) -> Tools {
        Tools {
            socket,
            conntrack: self.conntrack.clone(),
            timeout: self.transaction_timeout,
        }
    }

    /// Returns the routes of the kernel.
    pub fn kernel(&self) -> Kernel {
        Kernel {
            ip: self.ip.clone(),
            timeout: self.transaction_timeout,
        }
    }

    /// Returns the ranges that the process answers for.
    pub fn answered(&self) -> Answered {
        Answered {
            ip: self.ip.clone(),
            ranges: match self.answer_service_ranges {
                true => self.service_ranges.clone(),
                false => Vec::new(),
            },
            timeout: self.transaction_timeout,
        }
    }
}

/// Returns whether `nft` takes a name as that of a table.
pub fn is_table_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.len() <= NAME_MAX
        && name.bytes().all(plain)
}

impl setpoint_host::Settings for Settings {
    fn drain(&self) -> Duration {
        match self.backend {
            BackendName::Nftables => Duration::ZERO,
            BackendName::Userspace => self.userspace.grace_period,
        }
    }

    async fn identity(&mut self, files: Files) -> anyhow::Result<Credentials> {
        Ok(self.serving.identity(&files)?)
    }

    fn validate(&self) -> Result<(), String> {
        let programs = !self.conntrack.is_empty() && !self.ip.is_empty();
        let times = !self.sync_period.is_zero() && !self.transaction_timeout.is_zero();
        first_broken(&[
            (
                is_table_name(&self.table),
                "table must be a letter and up to 63 letters, digits, - and _",
            ),
            (programs, "conntrack and ip must name a program"),
            self.serving.rule(),
            (
                times,
                "sync_period and transaction_timeout must be positive",
            ),
        ])?;
        self.userspace.validate()?;
        let mut ranges = self.node_port_addresses.iter();
        let are_single = ranges.all(|range| range.bits() == 32);
        first_broken(&[(
            self.backend != BackendName::Userspace || are_single,
            "with the back end userspace, node_port_addresses must be addresses, not ranges",
        )])?;
        let is_all = self.nodes.iter().any(|name| name == node::ALL);
        first_broken(&[
            (
                self.backend != BackendName::Userspace || !self.answer_service_ranges,
                "answer_service_ranges needs the back end nftables",
            ),
            (
                self.backend != BackendName::Userspace || self.routed_pod_ranges.is_empty(),
                "routed_pod_ranges needs the back end nftables",
            ),
            (
                !is_all || self.routed_pod_ranges.is_empty(),
                "routed_pod_ranges needs the names of the nodes of this machine",
            ),
            (
                !is_all || self.nodes.len() == 1,
                "nodes must be names, or * alone",
            ),
        ])?;
        self.gateway.validate().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;

    #[test]
    fn the_settings_file_has_every_setting_with_its_default() {
        let template = setpoint_host::settings::template::<Settings>("proxy", &());
        expect_file!["../../../deploy/config/proxy.toml"].assert_eq(&template);
    }
}
