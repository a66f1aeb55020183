//! The endpoints that count: ready ones, or those that still serve while all end.

use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use std::sync::Arc;

use crate::SliceView;
use crate::service::Port;
use crate::slice::Endpoint;

/// The endpoints of a port, by the policies that use them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pools {
    /// Those for all clients.
    pub cluster: BTreeSet<SocketAddrV4>,
    /// Those on the nodes of the clients.
    pub local: BTreeSet<SocketAddrV4>,
}

impl Pools {
    /// Returns whether the port has no endpoint at all.
    pub fn is_empty(&self) -> bool {
        self.cluster.is_empty() && self.local.is_empty()
    }
}

/// The nodes that clients are on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area<'a> {
    /// Their names.
    pub nodes: Vec<&'a str>,
    /// Their zone; empty if they have none or several.
    pub zone: &'a str,
}

impl Area<'_> {
    /// Returns whether a node is one of them.
    pub fn has(&self, node: &str) -> bool {
        self.nodes.contains(&node)
    }
}

/// All endpoints of a port of a Service.
pub struct Candidates<'a>(Vec<(SocketAddrV4, &'a Endpoint)>);

impl<'a> Candidates<'a> {
    /// Returns the endpoints of a port in these slices.
    pub fn of(slices: &'a [Arc<SliceView>], port: &'a Port) -> Self {
        Self(
            slices
                .iter()
                .flat_map(|slice| of_port(slice, port))
                .collect(),
        )
    }

    /// Returns whether an endpoint is meant for clients of some places.
    pub fn have_hints(&self) -> bool {
        let hinted = |one: &Endpoint| !one.for_nodes.is_empty() || !one.for_zones.is_empty();
        self.0.iter().any(|(_, endpoint)| hinted(endpoint))
    }

    /// Returns the endpoints that count for clients of an area. Of all and of the local ones alone, those that end
    /// count only if none is ready.
    pub fn pools(&self, area: &Area<'_>) -> Pools {
        let topology = Topology::of(&self.0, area);
        let local = |endpoint: &Endpoint| area.has(&endpoint.node);
        let cluster = self.select(|one| one.ready && topology.has(one, area));
        let ending = |endpoint: &Endpoint| endpoint.serving && endpoint.terminating;
        let or = |ready: BTreeSet<_>, others: &dyn Fn(&Endpoint) -> bool| match ready.is_empty() {
            true => self.select(others),
            false => ready,
        };
        let ready_here = self.select(|one| local(one) && one.ready);
        Pools {
            cluster: or(cluster, &ending),
            local: or(ready_here, &|one| local(one) && ending(one)),
        }
    }

    fn select(&self, wanted: impl Fn(&Endpoint) -> bool) -> BTreeSet<SocketAddrV4> {
        let wanted = self.0.iter().filter(|(_, endpoint)| wanted(endpoint));
        wanted.map(|(socket, _)| *socket).collect()
    }
}

fn of_port<'a>(
    slice: &'a SliceView,
    port: &'a Port,
) -> impl Iterator<Item = (SocketAddrV4, &'a Endpoint)> {
    let same =
        |of: &&crate::slice::EndpointPort| of.name == port.name && of.protocol == port.protocol;
    let ports = slice.ports.iter().filter(same);
    ports.flat_map(|port| {
        let endpoints = slice.endpoints.iter();
        endpoints.filter_map(|one| Some((SocketAddrV4::new(one.address?, port.port), one)))
    })
}

/// The restriction of endpoints to clients near by, by their hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topology {
    /// Not at all: an endpoint has no hint, or none has one for this area.
    Anywhere,
    SameZone,
    SameNode,
}

impl Topology {
    fn of(all: &[(SocketAddrV4, &Endpoint)], area: &Area<'_>) -> Self {
        let ready = || all.iter().map(|(_, one)| one).filter(|one| one.ready);
        let every = |hinted: fn(&Endpoint) -> bool| ready().all(|one| hinted(one));
        let some = |mode: Self| ready().any(|one| mode.has(one, area));
        if every(|one| !one.for_nodes.is_empty()) && some(Self::SameNode) {
            return Self::SameNode;
        }
        match every(|one| !one.for_zones.is_empty()) && some(Self::SameZone) {
            true => Self::SameZone,
            false => Self::Anywhere,
        }
    }

    fn has(self, endpoint: &Endpoint, area: &Area<'_>) -> bool {
        match self {
            Self::Anywhere => true,
            Self::SameZone => endpoint.for_zones.iter().any(|zone| **zone == *area.zone),
            Self::SameNode => endpoint.for_nodes.iter().any(|node| area.has(node)),
        }
    }
}
