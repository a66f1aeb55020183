//! The plan for a Service, in terms of no back end.

use std::collections::BTreeMap;
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
    /// A port of the addresses of the site with this number. It comes before [`Front::Node`].
    NodeOf(u16, u16),
    /// An address and port, for clients of the site with this number. It comes before [`Front::Address`].
    From(u16, SocketAddrV4),
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

/// A way, and the endpoints that it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The way.
    pub chain: Chain,
    /// The site whose endpoints it leads to; `None` for those of the whole machine.
    pub site: Option<u16>,
}

impl Way {
    /// Returns the way to the endpoints of the whole machine.
    pub const fn whole(chain: Chain) -> Self {
        Self { chain, site: None }
    }
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
    pub action: Result<Way, Refusal>,
}

/// The endpoints of one site, where they differ from those of the whole machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SitePools {
    /// The endpoints of the cluster for its clients, sorted; `None` if they are those of [`PortPlan::cluster`].
    pub cluster: Option<Vec<SocketAddrV4>>,
    /// The endpoints of its node, sorted.
    pub local: Vec<SocketAddrV4>,
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
    /// The endpoints of sites, by their numbers, that a front leads to.
    pub sites: BTreeMap<u16, SitePools>,
    /// The places at which connections are accepted.
    pub fronts: Vec<FrontPlan>,
}

impl PortPlan {
    /// Returns all endpoints, some of them several times.
    pub fn endpoints(&self) -> impl Iterator<Item = SocketAddrV4> {
        let of_site = |pools: &'_ SitePools| {
            let cluster = pools.cluster.iter().flatten().copied();
            cluster
                .chain(pools.local.iter().copied())
                .collect::<Vec<_>>()
        };
        let whole = self.cluster.iter().chain(&self.local).copied();
        whole.chain(self.sites.values().flat_map(of_site))
    }

    /// Returns whether a front leads this way to the endpoints of a site, or of the whole machine.
    pub fn leads(&self, chain: Chain, site: Option<u16>) -> bool {
        let way = Ok(Way { chain, site });
        self.fronts.iter().any(|front| front.action == way)
    }
}

/// The plan for a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServicePlan {
    /// Its ports.
    pub ports: Vec<Arc<PortPlan>>,
}
