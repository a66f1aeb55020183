//! Zones of endpoints, and hints for proxies: the zones and nodes whose clients an endpoint should serve.

use std::collections::BTreeMap;

use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_model::condition::{self, NETWORK_POLICIES_ENFORCED};
use setpoint_proto::core::{Node, Service};
use setpoint_proto::discovery::{Endpoint, EndpointHints, ForNode, ForZone};

/// The zones of nodes, by the names of the nodes.
pub type Zones = BTreeMap<String, String>;

/// The fields of a Node that endpoints depend on.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// Its zone.
    pub zone: Option<Box<str>>,
    /// Whether NetworkPolicies restrict the connections of its Pods.
    pub enforces_policies: bool,
}

impl View for NodeView {
    type Object = Node;

    fn of(node: Node) -> Self {
        let mut meta = Meta::of(&node.metadata);
        let zone = meta.labels.remove("topology.kubernetes.io/zone");
        meta.labels.clear();
        meta.annotations.clear();
        let conditions = &node.status.conditions;
        Self {
            meta,
            zone: zone.map(Box::from),
            enforces_policies: condition::is_true(conditions, NETWORK_POLICIES_ENFORCED),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// Sets the zone of an endpoint, and the hints that the Service's `trafficDistribution` asks for. An endpoint that is
/// not ready has none, nor has one of a node without a zone for its zone.
pub(crate) fn complete(endpoint: &mut Endpoint, service: &Service, zones: &Zones) {
    let node = endpoint.node_name.clone();
    endpoint.zone = node.as_ref().and_then(|node| zones.get(node)).cloned();
    let distribution = service.spec.traffic_distribution.as_deref();
    let (by_zone, by_node) = match distribution {
        Some("PreferClose" | "PreferSameZone") => (true, false),
        // Proxies that do not know hints for nodes use those for zones.
        Some("PreferSameNode") => (true, true),
        _ => (false, false),
    };
    let is_ready = endpoint.conditions.ready == Some(true);
    let zone = endpoint.zone.clone().filter(|_| by_zone && is_ready);
    let node = node.filter(|_| by_node && is_ready);
    let hinted = zone.is_some() || node.is_some();
    endpoint.hints = hinted.then(|| EndpointHints {
        for_zones: zone.into_iter().map(|name| ForZone { name }).collect(),
        for_nodes: node.into_iter().map(|name| ForNode { name }).collect(),
    });
}
