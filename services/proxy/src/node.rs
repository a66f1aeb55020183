//! The fields of a Node that traffic depends on, and the nodes of this machine.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use setpoint_controller::View;
use setpoint_model::{Cidr, Meta};
use setpoint_proto::core::Node;

const ZONE: &str = "topology.kubernetes.io/zone";

/// A Node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    /// The identity.
    pub meta: Meta,
    /// Its zone; empty if it has none.
    pub zone: Box<str>,
    /// Its addresses in the cluster.
    pub addresses: Vec<Ipv4Addr>,
}

impl View for NodeView {
    type Object = Node;

    fn of(node: Node) -> Self {
        let zone = node.metadata.labels.get(ZONE);
        let internal = node.status.addresses.iter();
        let internal = internal.filter(|one| one.r#type == "InternalIP");
        Self {
            meta: Meta::identity(&node.metadata),
            zone: zone.map(|zone| &**zone).unwrap_or_default().into(),
            addresses: internal
                .filter_map(|one| one.address.parse().ok())
                .collect(),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// The place of this proxy in the cluster: the nodes whose traffic passes through it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The names of the nodes.
    pub nodes: BTreeSet<Box<str>>,
    /// The zone of the nodes; empty if they have none or several.
    pub zone: Box<str>,
    /// The addresses at which node ports accept connections.
    pub addresses: BTreeSet<Cidr>,
}

impl Place {
    /// Returns the place of a proxy of the nodes with these names. Node ports accept connections at the addresses of
    /// the nodes if `addresses` is empty.
    pub fn of<'a>(
        names: &[String],
        addresses: &[Cidr],
        nodes: impl IntoIterator<Item = &'a NodeView>,
    ) -> Self {
        let ours = |node: &&NodeView| names.contains(&node.meta.key.name);
        let ours: Vec<_> = nodes.into_iter().filter(ours).collect();
        let zones: BTreeSet<_> = ours.iter().map(|node| &node.zone).collect();
        let own = ours.iter().flat_map(|node| &node.addresses);
        Self {
            nodes: names.iter().map(|name| name.as_str().into()).collect(),
            zone: match zones.first() {
                Some(zone) if zones.len() == 1 => (*zone).clone(),
                _ => Box::default(),
            },
            addresses: match addresses.is_empty() {
                true => own.map(|ip| Cidr::host(*ip)).collect(),
                false => addresses.iter().copied().collect(),
            },
        }
    }
}
