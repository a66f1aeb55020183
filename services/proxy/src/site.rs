//! The nodes of a machine that are told apart by addresses. Pure.
//!
//! A client belongs to the node that its address is one of, or that it is the address of a Pod of; a connection to an
//! address of a node belongs to that node. The machine itself, and addresses of several nodes, belong to all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use setpoint_model::Cidr;

use crate::NodeView;
use crate::endpoints::Area;

/// One of several nodes of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The name of the node.
    pub node: Box<str>,
    /// The zone of the node; empty if it has none.
    pub zone: Box<str>,
    /// The ranges of the addresses of its Pods. No range overlaps another one of the machine.
    pub pods: BTreeSet<Cidr>,
    /// Its addresses, which no other node of the machine has.
    pub addresses: BTreeSet<Ipv4Addr>,
    /// Those of its addresses at which node ports accept connections.
    pub fronts: BTreeSet<Ipv4Addr>,
}

impl Site {
    /// Returns the ranges of the addresses of its clients.
    pub fn clients(&self) -> impl Iterator<Item = Cidr> {
        let addresses = self.addresses.iter().copied().map(Cidr::host);
        self.pods.iter().copied().chain(addresses)
    }

    /// Returns the area of the node alone.
    pub(crate) fn area(&self) -> Area<'_> {
        Area {
            nodes: vec![&self.node],
            zone: &self.zone,
        }
    }
}

/// Returns the sites of nodes by the positions of their names in the settings; none if there is one name only.
/// `accepted` are the addresses at which node ports accept connections.
pub fn sites(
    names: &[String],
    nodes: &[&NodeView],
    accepted: &BTreeSet<Cidr>,
) -> BTreeMap<u16, Site> {
    if names.len() < 2 {
        return BTreeMap::new();
    }
    let numbered = (0..).zip(names);
    let of_name = |name: &String| nodes.iter().find(|node| node.meta.key.name == *name);
    let numbered = numbered.filter_map(|(number, name)| Some((number, *of_name(name)?)));
    let site = |(number, node)| (number, site(node, nodes, accepted));
    let has_clients = |(_, site): &(u16, Site)| site.clients().next().is_some();
    numbered.map(site).filter(has_clients).collect()
}

fn site(node: &NodeView, nodes: &[&NodeView], accepted: &BTreeSet<Cidr>) -> Site {
    let others = || nodes.iter().filter(|other| other.meta.key != node.meta.key);
    let is_own = |range: &Cidr| {
        let of_others = others().flat_map(|other| ranges(other));
        of_others.into_iter().all(|other| !other.overlaps(*range))
    };
    let own = || node.addresses.iter().copied();
    let addresses: BTreeSet<_> = own().filter(|ip| is_own(&Cidr::host(*ip))).collect();
    // Of ranges within each other, the kernel takes one.
    let apart = |range: &Cidr| {
        let wider = |other: &&Cidr| *other != range && range.is_within(**other);
        !node.pod_ranges.iter().any(|other| wider(&other)) && own().all(|ip| !range.contains(ip))
    };
    let pods = node.pod_ranges.iter().copied();
    Site {
        node: node.meta.key.name.as_str().into(),
        zone: node.zone.clone(),
        pods: pods.filter(|range| is_own(range) && apart(range)).collect(),
        fronts: addresses
            .iter()
            .filter(|ip| accepted.iter().any(|range| range.contains(**ip)))
            .copied()
            .collect(),
        addresses,
    }
}

/// Returns the ranges of the addresses of a node and of its Pods.
fn ranges(node: &NodeView) -> impl Iterator<Item = Cidr> {
    let addresses = node.addresses.iter().copied().map(Cidr::host);
    node.pod_ranges.iter().copied().chain(addresses)
}
