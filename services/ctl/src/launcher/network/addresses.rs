//! The ranges and addresses of a cluster with a number. Pure.

use std::net::Ipv4Addr;

use anyhow::anyhow;
use serde::{Deserialize, Serialize};
use setpoint_model::Cidr;

/// The number of node ports of a cluster.
const NODE_PORTS: u16 = 2768;
/// The last node port of the first cluster, as upstream.
const LAST_NODE_PORT: u16 = 32_767;

/// The way in which Pods that are processes, and Services, have addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Pods share the network of the machine.
    #[default]
    Host,
    /// Pods are connected to a bridge.
    Bridge,
    /// Pods share the network of the machine, and Services have addresses of the loopback, too.
    Loopback,
    /// Nodes are machines that join, and this one has the address at which they reach the gateways. Each node makes the
    /// network of its Pods.
    Machines(Ipv4Addr),
}

/// The addresses of a local cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Network {
    /// The number of the cluster on this machine.
    pub(super) number: u8,
    /// The way in which Pods and Services have addresses.
    pub kind: Kind,
}

impl Network {
    /// Returns whether Pods are connected to a bridge.
    pub fn has_bridge(self) -> bool {
        self.kind == Kind::Bridge
    }

    /// Returns whether each node is given a range of the addresses of Pods.
    pub fn gives_ranges(self) -> bool {
        matches!(self.kind, Kind::Bridge | Kind::Machines(_))
    }

    /// Returns the address of this machine for the others of the cluster; `None` for a cluster of one machine.
    pub fn machine(self) -> Option<Ipv4Addr> {
        match self.kind {
            Kind::Machines(address) => Some(address),
            Kind::Host | Kind::Bridge | Kind::Loopback => None,
        }
    }

    /// Returns the network of the same cluster, as of another of its machines.
    #[must_use]
    pub fn at(self, machine: Ipv4Addr) -> Self {
        Self {
            kind: Kind::Machines(machine),
            ..self
        }
    }

    /// Returns the range of the addresses of Pods.
    pub fn pods(self) -> String {
        match self.kind {
            Kind::Loopback => format!("127.{}.0.0/16", self.loopback_pods()),
            Kind::Host | Kind::Bridge | Kind::Machines(_) => {
                format!("10.{}.0.0/16", 244_u8.saturating_sub(self.number))
            }
        }
    }

    /// Returns the second octet of the addresses of Pods on the loopback.
    fn loopback_pods(self) -> u8 {
        128_u8.saturating_add(self.number)
    }

    /// Returns the range of the addresses of the Pods of the node with this index, if its agent has to know it.
    pub fn pods_of(self, index: usize) -> Option<String> {
        let pods = || format!("127.{}.{index}.0/24", self.loopback_pods());
        (self.kind == Kind::Loopback).then(pods)
    }

    /// Returns the range of the addresses of nodes and gateways.
    pub(super) fn nodes(self) -> String {
        format!("10.255.{}.0/24", self.number)
    }

    /// Returns the range of the addresses of Services.
    pub fn services(self) -> String {
        format!("{}/16", self.service(0))
    }

    /// Returns the ranges of the addresses of Pods and of Services.
    ///
    /// # Errors
    /// If a range is none of IPv4.
    pub fn ranges(self) -> anyhow::Result<[(&'static str, Cidr); 2]> {
        let range = |text: String| text.parse().map_err(|_| anyhow!("{text} is no range"));
        Ok([
            ("Pods", range(self.pods())?),
            ("Services", range(self.services())?),
        ])
    }

    /// Returns an address of a Service, the one with this number in the range.
    fn service(self, host: u8) -> Ipv4Addr {
        let first = match self.kind {
            Kind::Loopback => 127,
            Kind::Host | Kind::Bridge | Kind::Machines(_) => 10,
        };
        Ipv4Addr::new(first, 96_u8.saturating_add(self.number), 0, host)
    }

    /// Returns the range of node ports.
    pub fn node_ports(self) -> String {
        let last = LAST_NODE_PORT.saturating_sub(u16::from(self.number) * NODE_PORTS);
        format!("{}-{last}", last - NODE_PORTS + 1)
    }

    /// Returns the address of the Service `default/kubernetes`, the first of the range.
    pub fn api_service(self) -> Ipv4Addr {
        self.service(1)
    }

    /// Returns the address of the Service of the cluster's DNS, the tenth of the range as everywhere.
    pub fn dns_service(self) -> Ipv4Addr {
        self.service(10)
    }

    /// Returns the address at which Pods and nodes reach the gateways and the cluster's DNS: on the bridge, or of this
    /// machine. `None` if that is the loopback.
    pub fn gateway(self) -> Option<Ipv4Addr> {
        match self.kind {
            Kind::Bridge => Some(Ipv4Addr::new(10, 255, self.number, 1)),
            Kind::Machines(address) => Some(address),
            Kind::Host | Kind::Loopback => None,
        }
    }

    /// Returns the address of the node with this index on the bridge; `None` without one.
    pub fn node(self, index: usize) -> Option<Ipv4Addr> {
        let host = u8::try_from(index.checked_add(2)?).ok()?;
        self.has_bridge()
            .then(|| Ipv4Addr::new(10, 255, self.number, host))
    }

    /// Returns the name of the bridge.
    pub fn bridge(self) -> String {
        format!("setpoint{}", self.number)
    }
}
