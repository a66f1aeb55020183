//! Addresses of Services that are part of a network, for which the proxy answers.

use std::time::Duration;

use setpoint_proxy::nftables::{Answered, Base, Nftables};
use setpoint_proxy::{Backend as _, Place};

use crate::machine::{Machine, is_allowed};
use crate::objects::{Scene, here};
use crate::sites::node;
use crate::traffic::pod;

/// A part of the network of the first Pod.
const RANGE: &str = "10.1.1.64/26";

#[tokio::test(flavor = "multi_thread")]
async fn a_range_that_is_part_of_a_network_is_reached_without_a_route() {
    if !is_allowed() {
        return;
    }
    let machine = Machine::new(2);
    let base = Base {
        table: "setpoint-test".to_owned(),
        service_range: vec![RANGE.parse().unwrap()],
        masquerade_all: true,
        pod_range: Vec::new(),
    };
    let answered = Answered {
        ip: machine.machine.command("ip"),
        ranges: base.service_range.clone(),
        timeout: Duration::from_secs(20),
    };
    let mut backend = Nftables::new(base, machine.tools()).answering(answered);
    let scene = Scene::new("web", "10.1.1.70").slice(8080, &[pod(2)]);
    backend.sync(&here(), scene.changes(&here())).await.unwrap();
    let client = &machine.pods[0];
    // The endpoint sees the address of the machine in its own network.
    assert_eq!(client.connect("10.1.1.70:80").unwrap(), "pod2 10.1.2.1");
    let refused = client.connect("10.1.1.71:80").unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);

    machine
        .machine
        .output(&format!("ip route del local {RANGE} dev lo"));
    client.output("ip neigh flush all");
    assert!(client.connect("10.1.1.70:80").is_err());
    assert!(backend.check().await, "the check makes the route again");
    client.output("ip neigh flush all");
    assert_eq!(client.connect("10.1.1.70:80").unwrap(), "pod2 10.1.2.1");
}

#[test]
fn a_star_stands_for_all_nodes_which_are_one_place() {
    let nodes = [node(1, "192.0.2.11", "a"), node(2, "192.0.2.12", "b")];
    let place = Place::of(&["*".to_owned()], &[], &nodes);
    let names = ["node-1", "node-2"].map(Into::into);
    assert_eq!(place.nodes, names.into());
    assert!(place.sites.is_empty());
    assert_eq!((place.addresses.len(), &*place.zone), (2, ""));
}
