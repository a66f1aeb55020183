//! Routes to the Pods of other nodes: as data, and in the kernel.

use std::process::Command;
use std::time::Duration;

use setpoint_proxy::NodeView;
use setpoint_proxy::routes::{Kernel, Plan, Refused, Routes, plan};

use crate::machine::{Machine, Namespace, is_allowed};
use crate::sites::node;

/// The range of the cluster.
const WITHIN: &str = "10.1.0.0/16";

fn plan_of(nodes: &[NodeView]) -> Plan {
    plan(nodes, &["node-1".to_owned()], &[WITHIN.parse().unwrap()])
}

fn routes(routes: &[(&str, &str)]) -> Routes {
    let parse = |(range, via): &(&str, &str)| (range.parse().unwrap(), via.parse().unwrap());
    routes.iter().map(parse).collect()
}

fn with_range(number: u8, at: &str, range: &str) -> NodeView {
    let pod_ranges = vec![range.parse().unwrap()];
    NodeView {
        pod_ranges,
        ..node(number, at, "a")
    }
}

#[test]
fn each_other_machine_has_a_route_by_its_internal_ip() {
    let plan = plan_of(&[
        node(1, "192.0.2.1", "a"),
        node(3, "192.0.2.3", "a"),
        node(2, "192.0.2.2", "a"),
        // Of the same machine as node-1.
        node(4, "192.0.2.1", "a"),
        // Of a node that shares its loopback with others.
        node(5, "127.0.0.1", "a"),
    ]);
    let expected = [("10.1.2.0/24", "192.0.2.2"), ("10.1.3.0/24", "192.0.2.3")];
    assert_eq!(plan.routes, routes(&expected));
    assert_eq!(plan.refused, []);
}

#[test]
fn a_range_that_is_not_its_nodes_own_has_no_route() {
    for (range, reason) in [
        ("10.2.0.0/24", "does not lie in the ranges of the cluster"),
        ("0.0.0.0/0", "does not lie in the ranges of the cluster"),
        ("10.1.1.128/25", "overlaps 10.1.1.0/24 of node node-1"),
        ("10.1.0.0/16", "overlaps 10.1.2.0/24 of node node-2"),
        ("10.1.2.7/32", "overlaps 10.1.2.0/24 of node node-2"),
    ] {
        let plan = plan_of(&[
            node(1, "192.0.2.1", "a"),
            node(2, "192.0.2.2", "a"),
            with_range(3, "192.0.2.3", range),
        ]);
        assert_eq!(plan.routes, routes(&[("10.1.2.0/24", "192.0.2.2")]));
        let refused = Refused {
            node: "node-3".to_owned(),
            range: range.parse().unwrap(),
            reason: reason.to_owned(),
        };
        assert_eq!(plan.refused, [refused]);
    }
}

/// Makes the routes of a machine these ones, and returns the error.
async fn change(kernel: &Kernel, wanted: &[(&str, &str)]) -> Option<String> {
    let within = [WITHIN.parse().unwrap()];
    let known = kernel.routes(&within).await.unwrap();
    let wanted = routes(wanted);
    let changed = kernel.change(&known, &wanted).await;
    if changed.is_ok() {
        assert_eq!(kernel.routes(&within).await.unwrap(), wanted);
    }
    changed.err().map(|error| error.to_string())
}

fn kernel(machine: &Namespace) -> Kernel {
    Kernel {
        ip: machine.command("ip"),
        timeout: Duration::from_secs(20),
    }
}

/// Removes the routes of proxies as the program does it.
fn clean_up(machine: &Namespace) {
    let words = machine.command(env!("CARGO_BIN_EXE_proxy"));
    let mut proxy = Command::new(&words[0]);
    let output = proxy.args(&words[1..]).args(["--cleanup-routes", WITHIN]);
    let output = output.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kernel_has_the_routes_of_the_plan_and_those_of_others_stay() {
    if !is_allowed() {
        return;
    }
    let machine = Machine::new(2);
    let kernel = kernel(&machine.machine);
    machine
        .machine
        .ip("route add 10.2.0.0/24 via 10.1.1.2 proto 83");
    machine
        .machine
        .ip("route add 10.1.40.0/24 via 10.1.1.2 proto static");
    let server = &machine.pods[0];
    server.ip("addr add 10.1.30.5/32 dev lo");
    server.serve("far", "10.1.30.5:80");
    let two = [("10.1.30.0/24", "10.1.1.2"), ("10.1.31.0/24", "10.1.2.2")];
    assert_eq!(change(&kernel, &two).await, None);
    let answer = machine.machine.connect("10.1.30.5:80").unwrap();
    assert_eq!(answer, "far 10.1.1.1");
    assert_eq!(change(&kernel, &[("10.1.31.0/24", "10.1.1.2")]).await, None);

    // One route that cannot be made does not keep the others from being made.
    let three = [
        ("10.1.32.0/24", "192.168.77.1"),
        ("10.1.40.0/24", "10.1.2.2"),
        ("10.1.41.0/24", "10.1.2.2"),
    ];
    let error = change(&kernel, &three).await.unwrap();
    assert!(error.starts_with("nsenter failed: "), "{error}");
    let within = [WITHIN.parse().unwrap()];
    let made = routes(&[("10.1.41.0/24", "10.1.2.2")]);
    assert_eq!(kernel.routes(&within).await.unwrap(), made);
    let table = machine.machine.output("ip route");
    assert!(table.contains("10.1.40.0/24 via 10.1.1.2"), "{table}");
    assert_eq!(change(&kernel, &[]).await, None);
    let table = machine.machine.output("ip route");
    assert!(table.contains("10.2.0.0/24 via 10.1.1.2"), "{table}");

    assert_eq!(change(&kernel, &two).await, None);
    clean_up(&machine.machine);
    assert_eq!(kernel.routes(&within).await.unwrap(), routes(&[]));
    let table = machine.machine.output("ip route");
    for other in ["10.2.0.0/24 via 10.1.1.2", "10.1.40.0/24 via 10.1.1.2"] {
        assert!(table.contains(other), "{table}");
    }
    // There are none any more.
    clean_up(&machine.machine);
}
