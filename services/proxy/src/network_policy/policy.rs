//! The fields of a NetworkPolicy.

use setpoint_controller::View;
use setpoint_model::{Cidr, Meta, Selector};
use setpoint_proto::meta::LabelSelector;
use setpoint_proto::networking::{IpBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort};

use super::block::without;
use crate::Protocol;

/// The connections of a Pod that a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Those that others open to it.
    Ingress,
    /// Those that it opens to others.
    Egress,
}

/// Both directions.
pub const DIRECTIONS: [Direction; 2] = [Direction::Ingress, Direction::Egress];

/// The other ends of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Pods.
    Pods {
        /// Their namespaces; `None` for that of the policy.
        namespaces: Option<Selector>,
        /// Their labels.
        pods: Selector,
    },
    /// Addresses.
    Block(Vec<Cidr>),
}

/// A port that is connected to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Port {
    /// All of the protocol.
    Any(Protocol),
    /// Those from the first number to the last.
    Numbers(Protocol, u16, u16),
    /// The one that a container of the Pod has given a name.
    Named(Protocol, Box<str>),
}

/// Connections that are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The other ends; `None` for all.
    pub peers: Option<Vec<Peer>>,
    /// The ports; `None` for all.
    pub ports: Option<Vec<Port>>,
}

/// A NetworkPolicy.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyView {
    /// The identity.
    pub meta: Meta,
    /// The Pods that it restricts.
    pub pods: Selector,
    /// The connections that it allows them to accept; `None` if it does not restrict these.
    pub ingress: Option<Vec<Allowed>>,
    /// The connections that it allows them to open; `None` if it does not restrict these.
    pub egress: Option<Vec<Allowed>>,
}

impl PolicyView {
    /// Returns what it allows in one direction; `None` if it does not restrict that.
    pub fn rules(&self, direction: Direction) -> Option<&[Allowed]> {
        match direction {
            Direction::Ingress => self.ingress.as_deref(),
            Direction::Egress => self.egress.as_deref(),
        }
    }
}

impl View for PolicyView {
    type Object = NetworkPolicy;

    fn of(policy: NetworkPolicy) -> Self {
        let spec = &policy.spec;
        let restricts = |direction: &str| spec.policy_types.iter().any(|one| one == direction);
        let ingress = spec
            .ingress
            .iter()
            .map(|one| allowed(&one.from, &one.ports));
        let egress = spec.egress.iter().map(|one| allowed(&one.to, &one.ports));
        Self {
            meta: Meta::identity(&policy.metadata),
            pods: selector(&spec.pod_selector),
            ingress: restricts("Ingress").then(|| ingress.collect()),
            egress: restricts("Egress").then(|| egress.collect()),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// Parses a selector. One that is invalid selects nothing; the gateway accepts none.
fn selector(selector: &LabelSelector) -> Selector {
    Selector::from_label_selector(selector).unwrap_or_else(|_| Selector::nothing())
}

fn allowed(peers: &[NetworkPolicyPeer], ports: &[NetworkPolicyPort]) -> Allowed {
    Allowed {
        peers: (!peers.is_empty()).then(|| peers.iter().map(peer).collect()),
        ports: (!ports.is_empty()).then(|| ports.iter().filter_map(port).collect()),
    }
}

fn peer(peer: &NetworkPolicyPeer) -> Peer {
    match &peer.ip_block {
        Some(block) => Peer::Block(addresses(block)),
        None => Peer::Pods {
            namespaces: peer.namespace_selector.as_ref().map(selector),
            pods: peer
                .pod_selector
                .as_ref()
                .map_or_else(Selector::everything, selector),
        },
    }
}

/// Returns the IPv4 addresses of a block; none of one of IPv6.
fn addresses(block: &IpBlock) -> Vec<Cidr> {
    let except = block.except.iter().filter_map(|one| one.parse().ok());
    let except: Vec<Cidr> = except.collect();
    let block = block.cidr.parse();
    block.map_or_else(|_| Vec::new(), |block| without(block, &except))
}

/// Parses a port; `None` if it is none of a protocol that is known.
fn port(port: &NetworkPolicyPort) -> Option<Port> {
    let protocol = Protocol::of(port.protocol.as_deref().unwrap_or_default())?;
    let Some(first) = &port.port else {
        return Some(Port::Any(protocol));
    };
    if let Some(name) = first.as_str() {
        return Some(Port::Named(protocol, name.into()));
    }
    let first = first.int_val.try_into().ok()?;
    let last = port.end_port.map_or(Some(first), |end| end.try_into().ok());
    Some(Port::Numbers(protocol, first, last?))
}
