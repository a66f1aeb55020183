//! Serving certificates of nodes that are approved without a person. Pure.
//!
//! A node says itself which addresses it has (`status.addresses`), so that a name or an IP must also be one that it may
//! claim:
//!
//! * no name of the API server, of a Service, of gateways or of all agents, and no pattern; `localhost` only for a node
//!   of that name;
//! * no IP of the Service `kubernetes`, nor of a gateway unless its machine is one of the control plane, and none
//!   that an older Node declares, too: the first one keeps it, whatever others say;
//! * loopback addresses are those of each machine, so that agents of one machine, and gateways, may share them.
//!
//! Requests for others stay pending for a person. What nobody can take from this: the gateway accepts a certificate for
//! the agent of the Node only that its subject names, and the CA of signers for nothing else.

use std::collections::BTreeSet;
use std::net::IpAddr;

use setpoint_model::users::NODES;

use crate::plan::World;
use crate::signer::is_of_itself;
use crate::{NodeView, Request};

/// The name on the certificates of all agents that are not by the signers.
const AGENT: &str = "node-agent";
/// The name on the certificates of gateways alone.
const GATEWAY: &str = "gateway";
const LOCALHOST: &str = "localhost";
/// The Service of gateways.
const API: &str = "kubernetes";

/// Returns whether a node asks for a certificate of its own names and addresses only.
pub(crate) fn is_allowed(world: &World, request: &Request) -> bool {
    let spec = &world.request.spec;
    let is_node = spec.groups.iter().any(|group| group == NODES);
    if !is_node || !is_of_itself(request, &spec.username) {
        return false;
    }
    let node = world.node.as_ref().filter(|node| node.is(&spec.uid));
    node.is_some_and(|node| {
        request.dns_names.iter().all(|name| has_name(node, name))
            && request.ips.iter().all(|ip| has_ip(node, *ip, &world.taken))
    })
}

fn has_name(node: &NodeView, name: &str) -> bool {
    node.names.iter().any(|own| own == name) && !is_reserved(name, &node.meta.key.name)
}

/// Returns whether a name stands for something else than one machine.
fn is_reserved(name: &str, node: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.trim_end_matches('.');
    let mut labels = name.split('.');
    let first = labels.next().unwrap_or_default();
    let of_api = first == API && matches!(labels.next(), None | Some("default"));
    let of_machine = name == LOCALHOST || name.ends_with(".localhost");
    let of_service = name.split('.').skip(1).any(|label| label == "svc");
    of_api
        || of_service
        || [AGENT, GATEWAY].contains(&name)
        || name.contains('*')
        || (of_machine && name != node)
}

fn has_ip(node: &NodeView, ip: IpAddr, taken: &BTreeSet<IpAddr>) -> bool {
    let canonical = ip.to_canonical();
    node.ips.contains(&ip)
        && !canonical.is_unspecified()
        && !canonical.is_multicast()
        && (canonical.is_loopback() || !taken.contains(&canonical))
}

/// Returns the IPs that a node may not claim: those of the Service of gateways, those of gateways unless its machine is
/// one of the control plane, and those that an older Node declares.
pub(crate) fn taken<'a>(
    node: &NodeView,
    nodes: impl IntoIterator<Item = &'a NodeView>,
    services: impl IntoIterator<Item = IpAddr>,
    gateways: impl IntoIterator<Item = IpAddr>,
) -> BTreeSet<IpAddr> {
    // Of two that were created in the same second, the one with the lower name.
    let age = |node: &NodeView| (node.meta.created, node.meta.key.name.clone());
    let own = age(node);
    let older = nodes.into_iter().filter(|other| age(other) < own);
    let ips = older.flat_map(|other| other.ips.iter().copied());
    let gateways = gateways.into_iter().filter(|_| !node.is_control_plane);
    let all = ips.chain(services).chain(gateways);
    all.map(|ip| ip.to_canonical()).collect()
}

#[cfg(test)]
mod tests {
    use setpoint_controller::View as _;
    use setpoint_proto::core::{Node, NodeAddress};

    use super::*;

    fn node(name: &str, second: i64, ips: &[&str], names: &[&str]) -> NodeView {
        let mut object = Node::default();
        object.metadata.name = name.into();
        let created = jiff::Timestamp::from_second(second).unwrap();
        object.metadata.creation_timestamp = created.into();
        let of = |kind: &str, address: &&str| NodeAddress {
            r#type: kind.into(),
            address: (*address).into(),
        };
        let ips = ips.iter().map(|ip| of("InternalIP", ip));
        let names = names.iter().map(|name| of("Hostname", name));
        object.status.addresses = ips.chain(names).collect();
        NodeView::of(object)
    }

    /// Checks V20: names that a client would take another server for.
    #[test]
    fn a_node_claims_its_own_names_and_none_of_others() {
        let all = [
            "a",
            "a.example.com",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "KUBERNETES.default.svc.cluster.local",
            "web.team.svc",
            "web.team.svc.cluster.local.",
            "node-agent",
            "gateway",
            "localhost",
            "x.localhost",
            "*.example.com",
            "kubernetes.example.com",
            "svc",
        ];
        let own = node("a", 1, &[], &all);
        let claimed = all.into_iter().filter(|name| has_name(&own, name));
        let expected = ["a", "a.example.com", "kubernetes.example.com", "svc"];
        assert_eq!(claimed.collect::<Vec<_>>(), expected);
        assert!(!has_name(&own, "b"));
        let local = node("localhost", 1, &[], &["localhost"]);
        assert!(has_name(&local, "localhost"));
    }

    /// Checks V20.
    #[test]
    fn an_ip_belongs_to_the_first_node_that_declares_it() {
        let declared = ["127.0.0.1", "10.0.0.1", "10.0.0.2", "0.0.0.0", "224.0.0.1"];
        let first = node("b", 1, &declared, &[]);
        let second = node("a", 2, &declared, &[]);
        let gateways = || ["10.0.0.2".parse().unwrap(), "127.0.0.1".parse().unwrap()];
        let claimed = |own: &NodeView| {
            let service = "10.96.0.1".parse::<IpAddr>().unwrap();
            let taken = taken(own, [&first, &second], [service], gateways());
            let ips = own.ips.iter().filter(|ip| has_ip(own, **ip, &taken));
            ips.map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(claimed(&first), ["127.0.0.1", "10.0.0.1"]);
        assert_eq!(claimed(&second), ["127.0.0.1"]);
        let mapped = node("c", 3, &["::ffff:10.0.0.1"], &[]);
        assert!(claimed(&mapped).is_empty());
        assert!(claimed(&node("d", 1, &["10.0.0.9"], &[])).len() == 1);
        // An administrator says that a gateway runs on its machine.
        let mut control_plane = node("e", 0, &["10.0.0.2", "10.96.0.1"], &[]);
        assert!(claimed(&control_plane).is_empty());
        control_plane.is_control_plane = true;
        assert_eq!(claimed(&control_plane), ["10.0.0.2"]);
    }
}
