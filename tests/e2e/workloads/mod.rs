//! Workloads of the controllers that share a process: driven by kubectl, on simulated nodes.

mod autoscaler;
mod bootstrap_tokens;
mod certificates;
mod cronjob;
mod daemonset;
mod deployment;
mod disruption;
mod dns;
mod endpoints;
mod job;
mod legacy_tokens;
mod metrics;
mod quota;
mod replication_controller;
mod statefulset;
mod volumes;

use setpoint_tests::{Cluster, Kubectl, Size, eventually, fast_election};

/// The controllers that have no service of their own.
pub const CONTROLLERS: [&str; 2] = ["--controllers", "*,-deployment,-replicaset"];

/// Starts a cluster with simulated nodes and one process of controllers.
fn cluster(simulated_nodes: usize) -> Cluster {
    cluster_of(Size {
        process_nodes: 0,
        simulated_nodes,
        ..Size::default()
    })
}

/// Starts a cluster of this size and one process of controllers.
fn cluster_of(size: Size) -> Cluster {
    let mut cluster = Cluster::start(size);
    cluster.service(MANAGER, 0, &flags());
    cluster
}

pub const MANAGER: &str = "controller-manager";

/// Returns the flags of a process of controllers, whose autoscaler looks at the metrics each second.
fn flags() -> Vec<String> {
    let often = "--horizontalpodautoscaler-sync-period=1s".to_owned();
    let controllers = CONTROLLERS.map(str::to_owned);
    [fast_election(), controllers.into(), vec![often]].concat()
}

pub fn create(kubectl: &Kubectl, manifest: &str) {
    let output = kubectl.with("create", manifest);
    assert!(output.success, "{}", output.stderr);
}

/// Returns the value of a JSON path of objects.
fn value(kubectl: &Kubectl, objects: &str, path: &str) -> String {
    kubectl
        .run(&format!("get {objects} -o jsonpath={{{path}}}"))
        .stdout
}

/// Waits until a JSON path of objects has a value.
fn until(kubectl: &Kubectl, objects: &str, path: &str, wanted: &str) {
    eventually(&format!("{path} of {objects} is {wanted:?}"), || {
        let found = value(kubectl, objects, path);
        let holds = found == wanted;
        let shown = || {
            format!(
                "{found:?}\n{}",
                kubectl.run(&format!("describe {objects}")).stdout
            )
        };
        holds.then_some(()).ok_or_else(shown)
    });
}

/// Returns the names of objects, without the kind.
fn names(kubectl: &Kubectl, objects: &str) -> Vec<String> {
    let names = kubectl.ok(&format!("get {objects} -o name"));
    let names = names
        .lines()
        .map(|name| name.rsplit('/').next().unwrap_or(name).to_owned());
    names.collect()
}

/// Waits until a JSON path of objects has any value.
fn until_some(kubectl: &Kubectl, objects: &str, path: &str) {
    eventually(&format!("{objects} has {path}"), || {
        let found = value(kubectl, objects, path);
        let shown = || kubectl.run(&format!("describe {objects}")).stdout;
        (!found.is_empty()).then_some(()).ok_or_else(shown)
    });
}
