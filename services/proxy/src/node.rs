//! The fields of a Node that traffic depends on, and the nodes of this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use setpoint_controller::View;
use setpoint_model::condition::{self, NETWORK_POLICIES_ENFORCED};
use setpoint_model::volume::{RUNTIME, SIMULATED};
use setpoint_model::{Cidr, Meta};
use setpoint_proto::core::Node;

use crate::endpoints::Area;
use crate::{Site, site};

/// The name in the settings that stands for all nodes of the cluster.
pub(crate) const ALL: &str = "*";
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
    /// The ranges of the addresses of its Pods.
    pub pod_ranges: Vec<Cidr>,
    /// Whether its Pods run nothing.
    pub simulated: bool,
    /// Whether it has the condition by which it is known that NetworkPolicies are enforced there.
    pub enforces_policies: bool,
}

impl View for NodeView {
    type Object = Node;

    fn of(node: Node) -> Self {
        let labels = &node.metadata.labels;
        let (zone, runtime) = (labels.get(ZONE), labels.get(RUNTIME));
        let internal = node.status.addresses.iter();
        let internal = internal.filter(|one| one.r#type == "InternalIP");
        // Nodes of old versions have one range only.
        let ranges = std::iter::once(&node.spec.pod_cidr).chain(&node.spec.pod_cidrs);
        let ranges: BTreeSet<_> = ranges.filter_map(|range| range.parse().ok()).collect();
        Self {
            meta: Meta::identity(&node.metadata),
            zone: zone.map(|zone| &**zone).unwrap_or_default().into(),
            addresses: internal
                .filter_map(|one| one.address.parse().ok())
                .collect(),
            simulated: runtime.is_some_and(|runtime| runtime == SIMULATED),
            pod_ranges: ranges.into_iter().collect(),
            enforces_policies: condition::is_true(
                &node.status.conditions,
                NETWORK_POLICIES_ENFORCED,
            ),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl NodeView {
    /// Returns whether more differs than the revision, as after a heartbeat.
    pub(crate) fn differs_from(&self, old: &Self) -> bool {
        let meta = self.meta.clone();
        *self
            != Self {
                meta,
                ..old.clone()
            }
    }
}

/// Returns whether the setting `nodes` names a node.
pub(crate) fn is_among(node: &String, names: &[String]) -> bool {
    are_all(names) || names.contains(node)
}

/// Returns whether the setting `nodes` stands for all nodes.
pub(crate) fn are_all(names: &[String]) -> bool {
    names == [ALL]
}

fn name_of(node: &NodeView) -> Box<str> {
    node.meta.key.name.as_str().into()
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
    /// The nodes that are told apart by addresses, by their numbers; none on a machine of one node.
    pub sites: BTreeMap<u16, Site>,
}

impl Place {
    /// Returns the place of a proxy of the nodes with these names, or of all if that is `*`. Node ports accept
    /// connections at the addresses of the nodes if `addresses` is empty.
    pub fn of<'a>(
        names: &[String],
        addresses: &[Cidr],
        nodes: impl IntoIterator<Item = &'a NodeView>,
    ) -> Self {
        let ours = |node: &&NodeView| is_among(&node.meta.key.name, names);
        let ours: Vec<_> = nodes.into_iter().filter(ours).collect();
        let zones: BTreeSet<_> = ours.iter().map(|node| &node.zone).collect();
        let own = ours.iter().flat_map(|node| &node.addresses);
        let addresses: BTreeSet<_> = match addresses.is_empty() {
            true => own.map(|ip| Cidr::host(*ip)).collect(),
            false => addresses.iter().copied().collect(),
        };
        Self {
            sites: site::sites(names, &ours, &addresses),
            nodes: match are_all(names) {
                true => ours.iter().map(|node| name_of(node)).collect(),
                false => names.iter().map(|name| name.as_str().into()).collect(),
            },
            zone: match zones.first() {
                Some(zone) if zones.len() == 1 => (*zone).clone(),
                _ => Box::default(),
            },
            addresses,
        }
    }

    /// Returns the number of the site with this address.
    pub fn site_at(&self, ip: Ipv4Addr) -> Option<u16> {
        let mut sites = self.sites.iter();
        let site = sites.find(|(_, site)| site.addresses.contains(&ip));
        site.map(|(number, _)| *number)
    }

    /// Returns the area of the whole machine.
    pub(crate) fn area(&self) -> Area<'_> {
        Area {
            nodes: self.nodes.iter().map(|name| &**name).collect(),
            zone: &self.zone,
        }
    }
}
