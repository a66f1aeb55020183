//! The endpoints that count: ready ones, or those that still serve while all end.

use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use std::sync::Arc;

use crate::service::Port;
use crate::slice::Endpoint;
use crate::{Place, SliceView};

/// The endpoints of a port, by the policies that use them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pools {
    /// Those for all clients.
    pub cluster: BTreeSet<SocketAddrV4>,
    /// Those on the nodes of this machine.
    pub local: BTreeSet<SocketAddrV4>,
}

impl Pools {
    /// Returns whether the port has no endpoint at all.
    pub fn is_empty(&self) -> bool {
        self.cluster.is_empty() && self.local.is_empty()
    }
}

/// Returns the endpoints of a port of a Service that count. Of all and of the local ones alone, those that end count
/// only if none is ready.
pub fn pools(slices: &[Arc<SliceView>], place: &Place, port: &Port) -> Pools {
    let all: Vec<_> = slices
        .iter()
        .flat_map(|slice| of_port(slice, port))
        .collect();
    let topology = Topology::of(&all, place);
    let local = |endpoint: &Endpoint| place.nodes.contains(&endpoint.node);
    let cluster = select(&all, |endpoint| {
        endpoint.ready && topology.has(endpoint, place)
    });
    let ending = |endpoint: &Endpoint| endpoint.serving && endpoint.terminating;
    let or = |ready: BTreeSet<_>, others: &dyn Fn(&Endpoint) -> bool| match ready.is_empty() {
        true => select(&all, others),
        false => ready,
    };
    let ready_here = select(&all, |endpoint| local(endpoint) && endpoint.ready);
    Pools {
        cluster: or(cluster, &ending),
        local: or(ready_here, &|endpoint| local(endpoint) && ending(endpoint)),
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

fn select(
    all: &[(SocketAddrV4, &Endpoint)],
    wanted: impl Fn(&Endpoint) -> bool,
) -> BTreeSet<SocketAddrV4> {
    let wanted = all.iter().filter(|(_, endpoint)| wanted(endpoint));
    wanted.map(|(socket, _)| *socket).collect()
}

/// The restriction of endpoints to clients near by, by their hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topology {
    /// Not at all: an endpoint has no hint, or none has one for this place.
    Anywhere,
    SameZone,
    SameNode,
}

impl Topology {
    fn of(all: &[(SocketAddrV4, &Endpoint)], place: &Place) -> Self {
        let ready = || all.iter().map(|(_, one)| one).filter(|one| one.ready);
        let every = |hinted: fn(&Endpoint) -> bool| ready().all(|one| hinted(one));
        let some = |mode: Self| ready().any(|one| mode.has(one, place));
        if every(|one| !one.for_nodes.is_empty()) && some(Self::SameNode) {
            return Self::SameNode;
        }
        match every(|one| !one.for_zones.is_empty()) && some(Self::SameZone) {
            true => Self::SameZone,
            false => Self::Anywhere,
        }
    }

    fn has(self, endpoint: &Endpoint, place: &Place) -> bool {
        match self {
            Self::Anywhere => true,
            Self::SameZone => endpoint.for_zones.contains(&place.zone),
            Self::SameNode => endpoint
                .for_nodes
                .iter()
                .any(|node| place.nodes.contains(node)),
        }
    }
}
