//! The routes that the nodes of a cluster ask for. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use setpoint_model::Cidr;

use crate::NodeView;
use crate::node::is_among;

/// The InternalIPs of nodes, by the ranges of their Pods.
pub type Routes = BTreeMap<Cidr, Ipv4Addr>;

/// The routes to the Pods of other nodes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The routes.
    pub routes: Routes,
    /// The ranges that have none.
    pub refused: Vec<Refused>,
}

/// A range of a node to which there is no route.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    /// The name of the node.
    pub node: String,
    /// The range.
    pub range: Cidr,
    /// The reason, as the end of a sentence.
    pub reason: String,
}

/// Returns the routes to the ranges of nodes that lie `within` those of the cluster. The nodes with the names `ours`
/// have none, nor those that share an InternalIP with these: they are on the same machine.
///
/// Ranges do not overlap: those of nodes with the names `ours` come first, then others by name.
pub fn plan<'n>(
    nodes: impl IntoIterator<Item = &'n NodeView>,
    ours: &[String],
    within: &[Cidr],
) -> Plan {
    let (own, mut others): (Vec<_>, Vec<_>) = nodes
        .into_iter()
        .partition(|node| is_among(&node.meta.key.name, ours));
    others.sort_by_key(|node| &node.meta.key.name);
    let here: BTreeSet<_> = own.iter().flat_map(|node| &node.addresses).collect();
    let mut taken = Taken::default();
    for node in own {
        node.pod_ranges
            .iter()
            .for_each(|range| taken.add(*range, node));
    }
    let mut plan = Plan::default();
    for node in others {
        let mut addresses = node.addresses.iter();
        let Some(via) = addresses.find(|ip| is_reachable(**ip)) else {
            continue;
        };
        if here.contains(via) {
            continue;
        }
        for range in &node.pod_ranges {
            match problem(*range, within, &taken) {
                Some(reason) => plan.refused.push(Refused {
                    node: node.meta.key.name.clone(),
                    range: *range,
                    reason,
                }),
                None => {
                    taken.add(*range, node);
                    plan.routes.insert(*range, *via);
                }
            }
        }
    }
    plan
}

/// Returns whether an address can be that of another machine.
const fn is_reachable(ip: Ipv4Addr) -> bool {
    !ip.is_loopback() && !ip.is_unspecified() && !ip.is_link_local() && !ip.is_multicast()
}

fn problem(range: Cidr, within: &[Cidr], taken: &Taken<'_>) -> Option<String> {
    if !within.iter().any(|whole| range.is_within(*whole)) {
        return Some("does not lie in the ranges of the cluster".to_owned());
    }
    let (other, node) = taken.overlapping(range)?;
    Some(format!("overlaps {other} of node {node}"))
}

/// Ranges that do not overlap but for those of one machine, by their first addresses.
#[derive(Default)]
struct Taken<'n>(BTreeMap<Ipv4Addr, (Cidr, &'n str)>);

impl<'n> Taken<'n> {
    fn add(&mut self, range: Cidr, node: &'n NodeView) {
        self.0.insert(range.first(), (range, &node.meta.key.name));
    }

    /// Returns a range that overlaps another one, and its node.
    fn overlapping(&self, range: Cidr) -> Option<(Cidr, &'n str)> {
        let (_, nearest) = self.0.range(..=range.last()).next_back()?;
        nearest.0.overlaps(range).then_some(*nearest)
    }
}
