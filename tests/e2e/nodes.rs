//! Nodes are added and removed, and their agents killed.

use std::time::Duration;

use serde_json::Value;
use setpoint_tests::{Cluster, Kubectl, Size, eventually};

use crate::node_pressure::pod;
use crate::web::{apply, pods, text, until_ready};
use crate::workloads::create;

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

/// Checks N2. The agent is killed while it starts and while it stops 20 Pods, each time after a little longer.
#[test]
fn an_agent_that_is_killed_at_any_step_starts_each_container_once_and_leaves_none() {
    let mut cluster = Cluster::start(Size {
        process_nodes: 1,
        simulated_nodes: 0,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    let starts = cluster.directory().join("starts");
    let names: Vec<String> = (0..20).map(|number| format!("pod-{number:02}")).collect();
    let path = starts.display();
    let manifests = names.iter().map(|name| {
        let script = format!("echo {name} >> {path}; exec sleep 1000000");
        pod(name, "", &script) + "---"
    });
    create(&kubectl, &manifests.collect::<String>());
    kill_repeatedly(&mut cluster);
    eventually("all Pods run", || {
        let phases = kubectl.ok("get pods -o jsonpath={.items[*].status.phase}");
        let running = phases
            .split_whitespace()
            .filter(|phase| *phase == "Running");
        let count = running.count();
        (count == names.len()).then_some(()).ok_or(phases)
    });
    let mut started = std::fs::read_to_string(&starts).expect("the containers write it");
    let mut lines: Vec<_> = started.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, names, "each has started once");

    kubectl.ok("delete pods --all --wait=false");
    kill_repeatedly(&mut cluster);
    eventually("all Pods are gone", || {
        let left = kubectl.ok("get pods -o name");
        left.is_empty().then_some(()).ok_or(left)
    });
    started = std::fs::read_to_string(&starts).expect("the containers write it");
    assert_eq!(
        started.lines().count(),
        names.len(),
        "none has started again"
    );
    let pods = cluster.node("node-0").join("pods");
    eventually("nothing is left of them", || {
        let left = std::fs::read_dir(&pods).map_err(|error| error.to_string())?;
        match left.count() {
            0 => Ok(()),
            count => Err(format!("{count} of them")),
        }
    });
}

fn kill_repeatedly(cluster: &mut Cluster) {
    let agent = cluster.process("node-agent-0");
    for round in 0..25 {
        std::thread::sleep(Duration::from_millis(20 * round));
        agent.restart();
    }
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
