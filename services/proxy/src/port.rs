//! The plan for a Service, in terms of no back end.

use std::fmt;
use std::net::SocketAddrV4;
use std::sync::Arc;

use setpoint_model::{Cidr, Key};

use crate::service::{Protocol, TrafficPolicy};

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId {
    /// The Service.
    pub service: Key,
    /// The name of the port.
    pub name: Box<str>,
    /// The protocol.
    pub protocol: Protocol,
}

impl fmt::Display for PortId {
    /// Writes `<namespace>/<service>/<protocol>/<port>`, which is unique: names of ports are unique in a Service.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            service,
            name,
            protocol,
        } = self;
        let (namespace, service) = (&service.namespace, &service.name);
        write!(f, "{namespace}/{service}/{}/{name}", protocol.name())
    }
}

/// A place at which connections are accepted, for one protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Front {
    /// An address and port.
    Address(SocketAddrV4),
    /// A port of the nodes.
    Node(u16),
}

/// The way of a connection through what is programmed for a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// To an endpoint of the cluster.
    Cluster,
    /// To an endpoint of this machine.
    Local,
    /// From outside, as the external policy says.
    External,
    /// From outside by a load balancer whose clients are restricted.
    Balancer,
}

/// The answer to connections without an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The client is told.
    Reject,
    /// None: other nodes have endpoints.
    Drop,
}

/// A place at which connections are accepted, and what happens to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontPlan {
    /// The place.
    pub at: Front,
    /// The way, or the refusal.
    pub action: Result<Chain, Refusal>,
}

/// The plan for a port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortPlan {
    /// The port.
    pub id: PortId,
    /// The number of seconds for which a client stays with its endpoint; `None` without affinity.
    pub affinity: Option<u32>,
    /// The policy of connections from outside; `None` if there are none.
    pub external: Option<TrafficPolicy>,
    /// The clients that may use the load balancer; empty for all.
    pub source_ranges: Vec<Cidr>,
    /// The endpoints of the cluster, sorted.
    pub cluster: Vec<SocketAddrV4>,
    /// The endpoints of this machine, sorted.
    pub local: Vec<SocketAddrV4>,
    /// The places at which connections are accepted.
    pub fronts: Vec<FrontPlan>,
}

impl PortPlan {
    /// Returns all endpoints, some of them twice.
    pub fn endpoints(&self) -> impl Iterator<Item = SocketAddrV4> {
        self.cluster.iter().chain(&self.local).copied()
    }
}

/// The plan for a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServicePlan {
    /// Its ports.
    pub ports: Vec<Arc<PortPlan>>,
}
