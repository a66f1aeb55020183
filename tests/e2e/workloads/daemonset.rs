//! DaemonSets.

use setpoint_tests::Kubectl;

use super::{cluster, create, until, value};

const AGENT: &str = r#"
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: main, image: "agent:1"}]
"#;

#[test]
fn each_node_that_fits_has_one_pod() {
    let cluster = cluster(3);
    let kubectl = cluster.kubectl();
    create(&kubectl, AGENT);
    kubectl.ok("rollout status daemonset/agent --timeout=60s");
    assert_eq!(nodes(&kubectl), ["node-0-0", "node-0-1", "node-0-2"]);

    kubectl.ok("taint node node-0-1 dedicated=db:NoExecute");
    until(
        &kubectl,
        "daemonset/agent",
        ".status.currentNumberScheduled",
        "2",
    );
    kubectl.ok("taint node node-0-1 dedicated-");
    until(&kubectl, "daemonset/agent", ".status.numberAvailable", "3");
    kubectl.ok("cordon node-0-2");
    kubectl.ok("set image daemonset/agent main=agent:2");
    kubectl.ok("rollout status daemonset/agent --timeout=60s");
    assert_eq!(images(&kubectl), "agent:2 agent:2 agent:2");
    kubectl.ok("rollout undo daemonset/agent");
    kubectl.ok("rollout status daemonset/agent --timeout=60s");
    assert_eq!(images(&kubectl), "agent:1 agent:1 agent:1");

    let selector = r#"{"spec":{"template":{"spec":{"nodeSelector":{"disk":"ssd"}}}}}"#;
    kubectl.ok(&format!("patch daemonset agent -p {selector}"));
    until(
        &kubectl,
        "daemonset/agent",
        ".status.desiredNumberScheduled",
        "0",
    );
    until(&kubectl, "pods -l app=agent", ".items[*].metadata.name", "");
    kubectl.ok("label node node-0-0 disk=ssd");
    until(&kubectl, "daemonset/agent", ".status.numberReady", "1");
    assert_eq!(nodes(&kubectl), ["node-0-0"]);
}

fn nodes(kubectl: &Kubectl) -> Vec<String> {
    let nodes = value(kubectl, "pods -l app=agent", ".items[*].spec.nodeName");
    let mut nodes: Vec<_> = nodes.split(' ').map(str::to_owned).collect();
    nodes.sort();
    nodes
}

fn images(kubectl: &Kubectl) -> String {
    value(
        kubectl,
        "pods -l app=agent",
        ".items[*].spec.containers[0].image",
    )
}
