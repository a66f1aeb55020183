//! Deployments whose controllers share the process of all others.

use setpoint_tests::{Cluster, Size};

use super::MANAGER;

#[test]
fn one_process_runs_the_controllers_of_deployments_and_replica_sets_too() {
    let mut cluster = Cluster::start(Size {
        replicas: 0,
        process_nodes: 0,
        ..Size::default()
    });
    cluster.service("scheduler", 0, &[]);
    let all = ["--controllers", "*"].map(str::to_owned);
    cluster.service(MANAGER, 0, &all);
    let kubectl = cluster.kubectl();
    kubectl.ok("create deployment web --image=web:1 --replicas=2");
    kubectl.ok("rollout status deployment/web --timeout=60s");
}
