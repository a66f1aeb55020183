//! Panics in the background tasks of all services of a cluster.

use std::collections::BTreeSet;

use setpoint_tests::{Address, Cluster, Kubectl, Size, eventually, http};

use crate::web;

const SIZE: Size = Size {
    gateways: 1,
    replicas: 1,
    process_nodes: 1,
    simulated_nodes: 1,
};
/// The number of processes: the controllers, the scheduler, and an agent for each node.
const CLIENTS: usize = 6;

/// The tasks of all services that are restarted after a panic, except that of a Docker engine.
const TASKS: [&str; 19] = [
    "cache-consistent-read",
    "cache-differences",
    "cache-reflector",
    "cache-sweep",
    "channel",
    "container",
    "custom-resource-definitions",
    "etcd-health",
    "events",
    "expiry",
    "flaps",
    "heartbeat",
    "informer",
    "kubernetes-service",
    "leader",
    "membership",
    "namespaces",
    "owner-graph",
    "quota-changes",
];

/// Each task of each process panics at its first start.
#[test]
fn a_cluster_works_after_a_panic_in_each_of_its_tasks() {
    let cluster = Cluster::with_environment(SIZE, ("SETPOINT_PANIC_ONCE", "true"));
    let kubectl = cluster.kubectl();
    web::apply(&kubectl);
    web::until_ready(&kubectl, 3);
    let addresses = addresses(&cluster, &kubectl);
    eventually("each task has panicked", || {
        let panicked: BTreeSet<_> = addresses.iter().flat_map(panicked).collect();
        let missing: Vec<_> = TASKS
            .into_iter()
            .filter(|task| !panicked.contains(*task))
            .collect();
        missing
            .is_empty()
            .then_some(())
            .ok_or(format!("not {missing:?}, but {panicked:?}"))
    });
    kubectl.ok("scale deployment/web-frontend -n production --replicas=5");
    web::until_ready(&kubectl, 5);
    for address in &addresses {
        let ready = http::get(address, "/readyz").expect("the process responds");
        assert_eq!(ready.status, 200, "{address}: {}", ready.body);
    }
}

/// Returns the addresses of all processes.
fn addresses(cluster: &Cluster, kubectl: &Kubectl) -> Vec<Address> {
    let mut addresses = eventually("all processes have registered their addresses", || {
        let leases = kubectl.json("get leases -n setpoint-replicas");
        let items = leases["items"].as_array().into_iter().flatten();
        let address = |lease| web::text(lease, "/metadata/annotations/setpoint.dev~1address");
        let addresses = items.map(|lease| cluster.process_at(address(lease)));
        let addresses: Vec<_> = addresses.collect();
        match addresses.len() {
            CLIENTS => Ok(addresses),
            _ => Err(format!("{addresses:?}")),
        }
    });
    addresses.push(cluster.gateway_url());
    addresses
}

/// Returns the names of the tasks that have panicked in a process.
fn panicked(address: &Address) -> Vec<String> {
    let metrics = http::get(address, "/metrics").map_or_else(|_| String::new(), |reply| reply.body);
    let lines = metrics.lines();
    let tasks = lines.filter_map(|line| line.strip_prefix("setpoint_panics_total{task=\""));
    let names = tasks.filter_map(|line| line.split('"').next());
    names.map(str::to_owned).collect()
}
