//! Nodes are added and removed.

use serde_json::Value;
use setpoint_tests::{Cluster, Kubectl, Size, eventually};

use crate::web::{apply, pods, text, until_ready};

#[test]
fn a_node_whose_agent_was_stopped_keeps_its_pods_and_gets_no_new_ones() {
    let mut cluster = Cluster::start(Size {
        process_nodes: 2,
        simulated_nodes: 0,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    apply(&kubectl);
    until_ready(&kubectl, 3);
    let before = names_on(&kubectl, "node-1");
    assert!(!before.is_empty(), "Pods are spread");

    assert!(
        cluster.process("node-agent-1").stop(),
        "it exits without an error"
    );
    assert_eq!(
        ready(&kubectl, "node-1"),
        "False",
        "written before the agent's exit"
    );
    kubectl.ok("scale deployment/web-frontend -n production --replicas 6");
    until_ready(&kubectl, 6);
    assert_eq!(
        names_on(&kubectl, "node-1"),
        before,
        "no new Pods on node-1"
    );

    cluster.process("node-agent-1").restart();
    eventually("the node is Ready again", || {
        let ready = ready(&kubectl, "node-1");
        (ready == "True").then_some(()).ok_or(ready)
    });
    until_ready(&kubectl, 6);
    assert_eq!(names_on(&kubectl, "node-1"), before, "its Pods are kept");
}

fn ready(kubectl: &Kubectl, node: &str) -> String {
    let node = kubectl.json(&format!("get node {node}"));
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|condition| text(condition, "/type") == "Ready");
    ready.map_or_else(String::new, |ready| text(ready, "/status").to_owned())
}

fn names_on(kubectl: &Kubectl, node: &str) -> Vec<String> {
    let mut names: Vec<_> = pods(kubectl)
        .iter()
        .filter(|pod| text(pod, "/spec/nodeName") == node)
        .map(|pod| text(pod, "/metadata/name").to_owned())
        .collect();
    names.sort();
    names
}
