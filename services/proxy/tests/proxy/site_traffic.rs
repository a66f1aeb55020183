//! Packets on a machine of several nodes, and a Service that the kernel refuses.

use std::io::ErrorKind;
use std::sync::Arc;

use serde_json::json;
use setpoint_proxy::{Backend, Changes, Kind, ServicePlan};

use crate::objects::Scene;
use crate::sites;
use crate::traffic::{Plane, WEB, names, node_port, pod, web};

#[tokio::test(flavor = "multi_thread")]
async fn a_client_reaches_the_endpoints_of_the_node_that_its_address_is_of() {
    let Some(mut plane) = Plane::new(3) else {
        return;
    };
    plane.place = sites::two();
    let local = |nodes: &[u8]| sites::web(nodes).spec(json!({"internalTrafficPolicy": "Local"}));
    plane.set(&local(&[1, 2])).await;
    let pods = &plane.machine.pods;
    assert_eq!(pods[0].names(WEB, 8), names(["pod1"]));
    assert_eq!(pods[1].connect(WEB).unwrap(), "pod2 10.1.2.1", "hairpin");
    assert_eq!(pods[1].names(WEB, 8), names(["pod2"]));
    // The machine, and Pods of no node of it, reach those of all its nodes.
    assert_eq!(
        plane.machine.machine.names(WEB, 30),
        names(["pod1", "pod2"])
    );
    assert_eq!(pods[2].names(WEB, 30), names(["pod1", "pod2"]));
    plane.set(&local(&[1])).await;
    let pods = &plane.machine.pods;
    let error = pods[1].connect(WEB).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert_eq!(pods[0].names(WEB, 3), names(["pod1"]));
    plane.set(&local(&[])).await;
    plane.refused(WEB);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_port_at_the_address_of_a_node_has_its_endpoints_and_shows_the_client() {
    let Some(mut plane) = Plane::new(2) else {
        return;
    };
    plane.place = sites::two();
    for ip in ["192.0.2.11", "192.0.2.12"] {
        plane.machine.address(ip);
    }
    let (first, second) = ("192.0.2.11:30080", "192.0.2.12:30080");
    plane
        .set(&sites::web(&[1, 2]).spec(node_port("Local")))
        .await;
    for _ in 0..8 {
        let answer = |at| plane.machine.client.connect(at).unwrap();
        assert_eq!(answer(first), "pod1 192.0.2.2");
        assert_eq!(answer(second), "pod2 192.0.2.2");
    }
    let pods = &plane.machine.pods;
    assert_eq!(pods[0].names(second, 8), names(["pod2"]));
    assert_eq!(pods[1].names(second, 30), names(["pod1", "pod2"]));
    assert_eq!(
        plane.machine.machine.names(second, 30),
        names(["pod1", "pod2"])
    );
    plane.set(&sites::web(&[1]).spec(node_port("Local"))).await;
    let error = plane.machine.client.connect(second).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert_eq!(plane.machine.client.names(first, 3), names(["pod1"]));
    plane
        .set(&sites::web(&[1, 2]).spec(node_port("Cluster")))
        .await;
    let both = names(["pod1", "pod2"]);
    assert_eq!(plane.machine.client.names(second, 30), both);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_balancer_at_the_address_of_a_node_has_its_endpoints() {
    let Some(mut plane) = Plane::new(2) else {
        return;
    };
    plane.place = sites::two();
    plane.machine.address("192.0.2.12");
    let ranges = |range: &str| json!({"loadBalancerSourceRanges": [range]});
    let scene = sites::web(&[1, 2])
        .spec(node_port("Local"))
        .balanced_at("192.0.2.12");
    let at = "192.0.2.12:80";
    for scene in [scene.clone(), scene.clone().spec(ranges("192.0.2.0/24"))] {
        plane.set(&scene).await;
        assert_eq!(plane.machine.client.connect(at).unwrap(), "pod2 192.0.2.2");
    }
    plane.set(&scene.spec(ranges("198.51.100.0/24"))).await;
    let error = plane.machine.client.connect(at).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_the_kernel_refuses_does_not_hold_up_others() {
    let Some(mut plane) = Plane::new(2) else {
        return;
    };
    let refused = |number: u8| {
        let scene = Scene::new(&format!("bad{number}"), &format!("10.96.1.{number}"));
        let (key, plan) = scene
            .slice(8080, &[pod(1)])
            .changes(&plane.place)
            .pop_first()
            .unwrap();
        let mut port = (*plan.unwrap().ports[0]).clone();
        // The name of its chain is longer than the kernel takes.
        port.id.name = "x".repeat(300).into();
        let ports = vec![Arc::new(port)];
        (key, Some(Arc::new(ServicePlan { ports })))
    };
    let many = |n: u8| {
        let scene = Scene::new(&format!("many{n}"), &format!("10.96.2.{n}"));
        scene.slice(8080, &[pod(1)]).changes(&plane.place)
    };
    let bad = [refused(1), refused(2)];
    let all: Changes = (0..40).flat_map(many).chain(bad.clone()).collect();
    assert_eq!(plane.program(all).await, Kind::Full);
    for at in ["10.96.2.0:80", "10.96.2.39:80"] {
        assert_eq!(plane.machine.machine.names(at, 2), names(["pod1"]));
    }
    plane.refused("10.96.1.1:80");
    // It is the same for one that comes later.
    let mut changes = web(&[2]).changes(&plane.place);
    changes.extend(bad);
    let first = plane.backend.sync(&plane.place, changes).await;
    assert!(first.is_err(), "the table may be to blame");
    assert_eq!(plane.program(Changes::new()).await, Kind::Full);
    assert_eq!(plane.machine.machine.names(WEB, 2), names(["pod2"]));
    assert_eq!(plane.set(&web(&[1])).await, Kind::Partial);
}
