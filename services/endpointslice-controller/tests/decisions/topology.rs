//! Zones and hints.

use std::collections::BTreeMap;

use setpoint_controller::View as _;
use setpoint_endpointslice_controller::NodeView;
use setpoint_proto::core::Node;

use crate::cluster::{Cluster, pod, selecting};

/// The zone of an endpoint, and the zones and nodes of its hints.
type Hinted = (Option<String>, Vec<String>, Vec<String>);

/// The zone and the hints of each endpoint, by the Pod's name.
fn hints(cluster: &Cluster) -> BTreeMap<String, Hinted> {
    let slices = cluster.slices();
    let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
    let hinted = endpoints.map(|endpoint| {
        let hints = endpoint.hints.clone().unwrap_or_default();
        let zones = hints.for_zones.into_iter().map(|zone| zone.name);
        let nodes = hints.for_nodes.into_iter().map(|node| node.name);
        let name = endpoint.target_ref.clone().expect("it is a Pod").name;
        (
            name,
            (endpoint.zone.clone(), zones.collect(), nodes.collect()),
        )
    });
    hinted.collect()
}

#[test]
fn ready_endpoints_are_hinted_to_clients_of_their_zone_or_node_as_the_service_prefers() {
    let on = |name: &str, ip: &str, ready, node: &str| {
        let mut pod = pod(name, ip, ready);
        pod.spec.node_name = node.into();
        pod
    };
    let pods = [
        on("east", "10.0.0.1", true, "node-e"),
        on("unready", "10.0.0.2", false, "node-e"),
        on("nowhere", "10.0.0.3", true, "node-n"),
    ];
    let mut cluster = Cluster::of(selecting(), pods);
    cluster.zones.insert("node-e".into(), "east".into());
    let east = || Some("east".to_owned());
    let one = |name: &str| vec![name.to_owned()];
    let none = Vec::new;
    let zonal = [
        ("east".to_owned(), (east(), one("east"), none())),
        ("nowhere".to_owned(), (None, none(), none())),
        ("unready".to_owned(), (east(), none(), none())),
    ];
    let nodal = [
        ("east".to_owned(), (east(), one("east"), one("node-e"))),
        ("nowhere".to_owned(), (None, none(), one("node-n"))),
        ("unready".to_owned(), (east(), none(), none())),
    ];
    for (preference, expected) in [
        (Some("PreferClose"), &zonal),
        (Some("PreferSameNode"), &nodal),
        (Some("PreferSameZone"), &zonal),
    ] {
        cluster.service.spec.traffic_distribution = preference.map(str::to_owned);
        cluster.settle();
        assert_eq!(hints(&cluster), expected.clone().into(), "{preference:?}");
    }
    cluster.service.spec.traffic_distribution = None;
    cluster.settle();
    let hinted =
        |(_, zones, nodes): &(_, Vec<String>, Vec<String>)| !zones.is_empty() || !nodes.is_empty();
    assert!(!hints(&cluster).values().any(hinted));
    cluster.zones.insert("node-n".into(), "north".into());
    cluster.settle();
    assert_eq!(hints(&cluster)["nowhere"].0.as_deref(), Some("north"));
}

#[test]
fn the_view_of_a_node_has_its_zone_and_no_other_label() {
    let mut node = Node::default();
    let zone = ("topology.kubernetes.io/zone".to_owned(), "east".to_owned());
    node.metadata.labels = [zone, ("disk".to_owned(), "ssd".to_owned())].into();
    let view = NodeView::of(node);
    assert_eq!(view.zone.as_deref(), Some("east"));
    assert!(view.meta.labels.is_empty());
}
