//! Several controllers in one process.

use setpoint_tests::{Cluster, Kubectl, eventually, fast_election};

use crate::web::{apply, until_ready};

const CONTROLLERS: [&str; 2] = ["deployment-controller", "replicaset-controller"];

#[test]
fn one_process_hosts_both_controllers_and_another_takes_both_over() {
    let mut cluster = Cluster::bare();
    let flags = fast_election();
    cluster.service("scheduler", 0, &flags);
    let simulated = ["--node-name", "node-0", "--runtime", "simulated"].map(str::to_owned);
    cluster.service("node-agent", 0, &simulated);
    cluster.service("controller-manager", 0, &flags);
    let kubectl = cluster.kubectl();
    until_leader_of_both(&cluster, "controller-manager-0");
    apply(&kubectl);
    until_ready(&kubectl, 3);
    until_both_reported(&kubectl);
    cluster.service("controller-manager", 1, &flags);
    cluster.process("controller-manager-0").kill();
    kubectl.ok("scale deployment/web-frontend -n production --replicas=5");
    until_ready(&kubectl, 5);
    until_leader_of_both(&cluster, "controller-manager-1");
}

fn until_leader_of_both(cluster: &Cluster, instance: &str) {
    eventually(&format!("{instance} holds both Leases"), || {
        let leaders = CONTROLLERS.map(|lease| cluster.leader(lease));
        let all = leaders.iter().all(|leader| leader == instance);
        all.then_some(()).ok_or(format!("{leaders:?}"))
    });
}

/// Waits until each controller has recorded an Event under its own name.
fn until_both_reported(kubectl: &Kubectl) {
    eventually("both controllers have recorded Events", || {
        let events = kubectl.run("get events -n production -o jsonpath={..reportingComponent}");
        let reported = |name: &&str| events.stdout.split(' ').any(|by| by == *name);
        let both = CONTROLLERS.iter().all(reported);
        both.then_some(()).ok_or(events.stdout.clone())
    });
}
