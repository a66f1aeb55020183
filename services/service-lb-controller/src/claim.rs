//! Claims of Services on ports of addresses. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::Whole;
use setpoint_model::Key;
use setpoint_proto::core::Service;

use crate::NodeView;

/// The largest number of addresses of one Service.
const MAX_ADDRESSES: usize = 256;

/// A port: the name of its protocol, and its number.
pub type Port = (String, i32);

/// The addresses that a Service is to have, and its ports at them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    /// The Service.
    pub service: Key,
    /// The time of its creation.
    pub created: Option<Timestamp>,
    /// Its ports.
    pub ports: BTreeSet<Port>,
    /// The addresses.
    pub addresses: BTreeSet<IpAddr>,
}

impl Claim {
    /// Returns the claim of a Service: on `fixed` addresses if there are any, otherwise on those of the nodes. `ready`
    /// are the names of the nodes with ready endpoints, which alone count for an external policy of Local.
    pub fn of(
        service: &Whole<Service>,
        nodes: &[Arc<NodeView>],
        ready: &BTreeSet<Box<str>>,
        fixed: &BTreeSet<IpAddr>,
    ) -> Self {
        let spec = &service.object.spec;
        let is_local = spec.external_traffic_policy == "Local";
        let has_endpoint = |node: &NodeView| ready.contains(node.meta.key.name.as_str());
        let usable = |node: &&Arc<NodeView>| node.accepts && (!is_local || has_endpoint(node));
        let usable: Vec<_> = nodes.iter().filter(usable).collect();
        let of_nodes = usable.iter().flat_map(|node| node.addresses.iter());
        let addresses: BTreeSet<IpAddr> = match fixed.is_empty() {
            true => of_nodes.copied().collect(),
            false => fixed
                .iter()
                .filter(|_| !usable.is_empty())
                .copied()
                .collect(),
        };
        let ports = spec.ports.iter();
        let family = |ip: &IpAddr| has_family(&spec.ip_families, *ip);
        Self {
            service: service.meta.key.clone(),
            created: service.meta.created,
            ports: ports
                .map(|port| (port.protocol.clone(), port.port))
                .collect(),
            addresses: addresses
                .into_iter()
                .filter(family)
                .take(MAX_ADDRESSES)
                .collect(),
        }
    }
}

/// Returns whether an address is of one of a Service's families; of IPv4 if it has none yet.
fn has_family(families: &[String], ip: IpAddr) -> bool {
    let name = if ip.is_ipv4() { "IPv4" } else { "IPv6" };
    match families.is_empty() {
        true => ip.is_ipv4(),
        false => families.iter().any(|family| family == name),
    }
}

/// Returns the claim that a Service's own one has lost to, with the place that both want; `None` if it has won.
///
/// The oldest Service has its ports, then each one whose ports are free at all of its addresses.
pub fn contest<'a>(claims: &'a [Claim], service: &Key) -> Option<(&'a Claim, (IpAddr, &'a Port))> {
    let mut order: Vec<_> = claims.iter().collect();
    order.sort_by_key(|claim| (claim.created, &claim.service));
    let mut taken: BTreeMap<(IpAddr, &Port), &Claim> = BTreeMap::new();
    for claim in order {
        let places = || {
            let addresses = claim.addresses.iter();
            addresses.flat_map(|ip| claim.ports.iter().map(|port| (*ip, port)))
        };
        let lost = places().find_map(|place| Some((*taken.get(&place)?, place)));
        if claim.service == *service {
            return lost;
        }
        if lost.is_none() {
            taken.extend(places().map(|place| (place, claim)));
        }
    }
    None
}
