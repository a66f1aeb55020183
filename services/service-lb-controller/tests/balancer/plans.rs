//! The plan, case by case.

use serde_json::json;
use setpoint_service_lb_controller::{Action, Balancing, Ingress};

use crate::scene::{Scene, balanced, node};

#[test]
fn a_service_gets_the_finalizer_and_then_the_addresses_of_nodes() {
    let mut scene = Scene::of(&[balanced("web", 1, &[80])], &[node(1), node(2)]);
    assert_eq!(scene.plan(0).steps[0].action, Action::Protect);
    assert_eq!(scene.plan(0).steps.len(), 1);
    scene.act(0, &Action::Protect);
    let plan = scene.plan(0);
    let Action::SetIngress(Ingress(ingress)) = &plan.steps[0].action else {
        panic!("{plan}");
    };
    let expected = json!([
        {"ip": "10.245.0.1", "ipMode": "VIP", "ports": [{"port": 80, "protocol": "TCP"}]},
        {"ip": "10.245.0.2", "ipMode": "VIP", "ports": [{"port": 80, "protocol": "TCP"}]},
    ]);
    assert_eq!(json!(ingress), expected);
    let told = "SetIngress([\"10.245.0.1\", \"10.245.0.2\"]) because its addresses or ports have changed\n";
    assert_eq!(plan.to_string(), told);
}

#[test]
fn nodes_that_accept_no_connections_are_left_out() {
    let mut nodes: Vec<_> = (1..=6).map(node).collect();
    nodes[0]["status"]["conditions"][0]["status"] = json!("Unknown");
    nodes[1]["metadata"]["labels"] =
        json!({"node.kubernetes.io/exclude-from-external-load-balancers": ""});
    nodes[2]["metadata"]["labels"] = json!({"setpoint.dev/runtime": "simulated"});
    nodes[3]["status"]["addresses"][0]["address"] = json!("127.0.0.1");
    let taint = json!({"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"});
    nodes[4]["spec"] = json!({"taints": [taint]});
    let mut scene = Scene::of(&[balanced("web", 1, &[80])], &nodes);
    scene.converge();
    assert_eq!(scene.addresses(0), ["10.245.0.6"]);
    scene.nodes.pop();
    scene.converge();
    assert!(scene.addresses(0).is_empty());
    assert_eq!(scene.plan(0).steps[0].action, Action::ReportNoNode);
}

#[test]
fn an_external_policy_of_local_has_the_nodes_with_ready_endpoints() {
    let mut web = balanced("web", 1, &[80]);
    web["spec"]["externalTrafficPolicy"] = json!("Local");
    let mut scene = Scene::of(&[web], &[node(1), node(2)]);
    scene.ready = ["node-2".into()].into();
    scene.converge();
    assert_eq!(scene.addresses(0), ["10.245.0.2"]);
}

#[test]
fn addresses_of_the_settings_are_given_in_place_of_those_of_nodes() {
    let mut scene = Scene::of(&[balanced("web", 1, &[80])], &[node(1)]);
    scene.fixed = ["192.0.2.1".parse().unwrap(), "fd00::1".parse().unwrap()].into();
    scene.converge();
    assert_eq!(scene.addresses(0), ["192.0.2.1"], "it has no IPv6");
    let loopback = Balancing {
        enabled: true,
        addresses: ["127.0.0.1".parse().unwrap()].into(),
    };
    assert!(setpoint_host::Settings::validate(&loopback).is_err());
}

#[test]
fn of_two_services_with_one_port_the_younger_stays_pending_and_says_why() {
    let services = [
        balanced("young", 2, &[80, 443]),
        balanced("old", 1, &[80]),
        balanced("third", 3, &[443]),
    ];
    let mut scene = Scene::of(&services, &[node(1)]);
    scene.converge();
    assert!(scene.addresses(0).is_empty());
    assert_eq!(scene.addresses(1), ["10.245.0.1"]);
    assert_eq!(scene.addresses(2), ["10.245.0.1"], "nobody has its port");
    let problem = "port 80 of TCP at 10.245.0.1 is that of the Service default/old";
    let plan = scene.plan(0);
    assert_eq!(plan.steps[0].action, Action::ReportTaken(problem.into()));
    let mut world = scene.world(0);
    world.reported = Some(problem.to_owned());
    let plan = setpoint_service_lb_controller::plan(&world);
    assert!(plan.is_empty(), "it is said once");
    // The port is free once the older one is being deleted.
    scene.services[1]["metadata"]["deletionTimestamp"] = json!("2026-11-29T01:00:00Z");
    scene.converge();
    assert_eq!(scene.addresses(0), ["10.245.0.1"]);
    assert!(scene.addresses(2).is_empty(), "its port is an older one's");
    assert_eq!(scene.finalizers(1), 0);
}

#[test]
fn one_number_of_two_protocols_is_no_conflict() {
    let mut udp = balanced("udp", 2, &[53]);
    udp["spec"]["ports"][0]["protocol"] = json!("UDP");
    let mut scene = Scene::of(&[balanced("tcp", 1, &[53]), udp], &[node(1)]);
    scene.converge();
    assert_eq!(scene.addresses(0), scene.addresses(1));
}

#[test]
fn services_of_another_class_are_not_touched() {
    let mut other = balanced("other", 1, &[80]);
    other["spec"]["loadBalancerClass"] = json!("example.com/other");
    other["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"]);
    let mut scene = Scene::of(&[other], &[node(1)]);
    assert!(scene.plan(0).is_empty());
    scene.services[0]["metadata"]["deletionTimestamp"] = json!("2026-11-29T01:00:00Z");
    assert!(scene.plan(0).is_empty());
    scene.services[0] = balanced("ours", 1, &[80]);
    scene.services[0]["spec"]["loadBalancerClass"] = json!("setpoint.dev/node-addresses");
    assert_eq!(scene.plan(0).steps[0].action, Action::Protect);
}

#[test]
fn a_service_of_another_type_loses_its_addresses_and_then_the_finalizer() {
    let mut scene = Scene::of(&[balanced("web", 1, &[80])], &[node(1)]);
    scene.converge();
    scene.services[0]["spec"]["type"] = json!("ClusterIP");
    assert_eq!(scene.plan(0).steps[0].action, Action::ClearIngress);
    scene.act(0, &Action::ClearIngress);
    assert_eq!(scene.plan(0).steps[0].action, Action::Release);
    scene.converge();
    assert_eq!(scene.finalizers(0), 0);
}
