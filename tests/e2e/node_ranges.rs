//! Nodes get ranges of Pod addresses.

use setpoint_tests::{Cluster, Kubectl, eventually, fast_election};

use crate::workloads::create;

#[test]
fn a_new_leader_gives_no_range_twice_and_a_node_without_one_is_told() {
    let mut cluster = Cluster::bare();
    let flags = [
        "--node-ipam-cluster-cidrs=10.244.0.0/23,10.96.0.0/22",
        "--node-ipam-service-cidrs=10.96.0.0/12",
        "--node-ipam-node-cidr-mask-size=24",
    ];
    let flags = [fast_election(), flags.map(str::to_owned).into()].concat();
    cluster.service("controller-manager", 0, &flags);
    let kubectl = cluster.kubectl();
    create_node(&kubectl, "a");
    until_range(&kubectl, "a", "10.244.0.0/24");
    cluster.service("controller-manager", 1, &flags);
    cluster.process("controller-manager-0").kill();
    create_node(&kubectl, "b");
    until_range(&kubectl, "b", "10.244.1.0/24");
    create_node(&kubectl, "c");
    eventually("the Event says that there is no range", || {
        let events =
            kubectl.run("get events --field-selector involvedObject.name=c -o jsonpath={..reason}");
        let told = events.stdout.contains("CIDRNotAvailable");
        told.then_some(()).ok_or(events.stdout)
    });
    kubectl.ok("delete node a");
    until_range(&kubectl, "c", "10.244.0.0/24");
}

fn create_node(kubectl: &Kubectl, name: &str) {
    let node = format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}");
    create(kubectl, &node);
}

fn until_range(kubectl: &Kubectl, name: &str, range: &str) {
    eventually(&format!("the range of node {name} is {range}"), || {
        let path = "-o jsonpath={.spec.podCIDR}={.spec.podCIDRs[*]}";
        let found = kubectl.run(&format!("get node {name} {path}"));
        let set = found.stdout == format!("{range}={range}");
        set.then_some(()).ok_or(found.stdout)
    });
}
