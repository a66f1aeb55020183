//! The resource usage of nodes and Pods, as `kubectl top` shows it.

use setpoint_tests::{Cluster, Kubectl, Size, eventually};

/// A Pod on a process node that computes without end, and one on the simulated node with a load.
const PODS: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: busy, labels: {app: usage}}
spec:
  nodeName: node-0
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: sh, command: [sh, -c, "while :; do :; done"]}]
---
apiVersion: v1
kind: Pod
metadata: {name: simulated, labels: {app: usage}, annotations: {setpoint.dev/simulated-load: 300m}}
spec:
  nodeName: node-1
  containers: [{name: main, image: web, resources: {requests: {memory: 20Mi}}}]
"#;

#[test]
fn top_shows_what_pods_and_nodes_use() {
    let cluster = Cluster::start(Size {
        process_nodes: 1,
        simulated_nodes: 1,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    let created = kubectl.with("create", PODS);
    assert!(created.success, "{}", created.stderr);
    let simulated = top(&kubectl, "pods -l app=usage", "simulated");
    assert_eq!(simulated, ["300m", "20Mi"]);
    let busy = top(&kubectl, "pods --containers", "busy");
    assert_eq!(busy[0], "main");
    let cpu = busy[1].trim_end_matches('m').parse::<u64>();
    assert!(cpu.is_ok_and(|millicores| millicores > 0), "{busy:?}");
    assert_eq!(top(&kubectl, "nodes", "node-1")[0], "300m");
}

/// Returns the cells after the name in the line of an object, once the output has it.
fn top(kubectl: &Kubectl, what: &str, name: &str) -> Vec<String> {
    eventually(&format!("top {what} shows {name}"), || {
        let output = kubectl.run(&format!("top {what} --no-headers"));
        let lines = output.stdout.lines().map(str::split_whitespace);
        let mut cells = lines.map(|cells| cells.map(str::to_owned).collect::<Vec<_>>());
        let found = cells.find(|cells| cells.first().is_some_and(|first| first == name));
        found
            .map(|cells| cells[1..].to_vec())
            .ok_or_else(|| format!("{output:?}"))
    })
}
