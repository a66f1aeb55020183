//! Nodes fail: their Pods move to others, but not because of the control plane's own failures.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use setpoint_ctl::launcher::program;
use setpoint_tests::{Cluster, Kubectl, Size, eventually, fast_election};

use crate::web::{is_ready, text};

const MANAGER: &str = "controller-manager";
/// Longer than the grace period and the tolerations of the Pods together.
const LONG_ENOUGH: Duration = Duration::from_secs(9);

/// Its Pods stay for two seconds on a node that does not answer.
const WEB: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: web}]
      tolerations:
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 2}
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 2}
"#;

/// Starts a cluster with two nodes, whose agents renew their Leases every second, and a grace period of five seconds.
fn cluster(process_nodes: usize, simulated_nodes: usize) -> Cluster {
    let size = Size {
        process_nodes,
        simulated_nodes,
        ..Size::default()
    };
    let mut cluster = Cluster::with_environment(size, ("SETPOINT__HEARTBEAT", "1s"));
    let flags = [
        "--controllers=*,-deployment,-replicaset",
        "--node-lifecycle-monitor-period=500ms",
        "--node-lifecycle-monitor-grace-period=5s",
        "--podgc-quarantine=2s",
    ];
    let flags = flags.map(str::to_owned);
    cluster.service(MANAGER, 0, &[fast_election(), flags.into()].concat());
    cluster
}

fn create(kubectl: &Kubectl) {
    let output = kubectl.with("create", WEB);
    assert!(output.success, "{}", output.stderr);
    kubectl.ok("rollout status deployment/web --timeout=60s");
}

fn pods(kubectl: &Kubectl) -> Vec<Value> {
    let list = kubectl.json("get pods -l app=web");
    list["items"].as_array().cloned().unwrap_or_default()
}

/// Returns name and node of the Pods, sorted.
fn placement(kubectl: &Kubectl) -> Vec<(String, String)> {
    let pods = pods(kubectl);
    let of = |pod: &Value, path: &str| text(pod, path).to_owned();
    let placed = pods
        .iter()
        .map(|pod| (of(pod, "/metadata/name"), of(pod, "/spec/nodeName")));
    let mut placed: Vec<_> = placed.collect();
    placed.sort();
    placed
}

fn names_on(kubectl: &Kubectl, node: &str) -> Vec<String> {
    let placed = placement(kubectl).into_iter();
    placed
        .filter(|(_, on)| on == node)
        .map(|(name, _)| name)
        .collect()
}

/// Returns status and reason of the condition `Ready` of a node, and its taints.
fn state(kubectl: &Kubectl, node: &str) -> String {
    const READY: &str = ".status.conditions[?(@.type==\"Ready\")]";
    let path = format!("{{{READY}.status}}/{{{READY}.reason}}|{{.spec.taints[*].key}}");
    let found = kubectl.run(&format!("get node {node} -o jsonpath={path}"));
    found.stdout.replace('|', " ").trim().to_owned()
}

fn until_state(kubectl: &Kubectl, node: &str, wanted: &str) {
    eventually(&format!("{node} is {wanted:?}"), || {
        let found = state(kubectl, node);
        (found == wanted).then_some(()).ok_or(found)
    });
}

const HEALTHY: &str = "True/KubeletReady";
const UNKNOWN: &str = "Unknown/NodeStatusUnknown";
const TAINT: &str = "node.kubernetes.io/unreachable";
/// The taint of simulated nodes.
const SIMULATED: &str = "setpoint.dev/simulated";

/// Returns the messages of the Events with a reason.
fn events(kubectl: &Kubectl, reason: &str) -> Vec<String> {
    let listed = kubectl.json(&format!("get events -A --field-selector=reason={reason}"));
    let items = listed["items"].as_array().cloned().unwrap_or_default();
    let messages = items.iter().map(|event| text(event, "/message").to_owned());
    messages.collect()
}

/// Checks N6.
#[test]
fn pods_of_a_node_whose_processes_are_all_killed_move_to_another_node() {
    let mut cluster = cluster(2, 0);
    let kubectl = cluster.kubectl();
    create(&kubectl);
    let lost = names_on(&kubectl, "node-1");
    assert!(!lost.is_empty() && lost.len() < 4, "Pods are spread");
    kill_all(&mut cluster, "node-1");
    let stopped = format!("{UNKNOWN} {TAINT} {TAINT}");
    until_state(&kubectl, "node-1", &stopped);
    eventually("four Pods are ready on node-0", || {
        let pods = pods(&kubectl);
        let on = |pod: &&Value| text(pod, "/spec/nodeName") == "node-0" && is_ready(pod);
        let ready = pods.iter().filter(on).count();
        let shown = || kubectl.run("get pods -o wide").stdout;
        (ready == 4).then_some(()).ok_or_else(shown)
    });
    for pod in &lost {
        let reason = ".status.conditions[?(@.type==\"DisruptionTarget\")].reason";
        let reason = kubectl.ok(&format!("get pod {pod} -o jsonpath={{{reason}}}"));
        assert_eq!(reason, "DeletionByTaintManager");
        let ready = ".status.conditions[?(@.type==\"Ready\")].status";
        let ready = kubectl.ok(&format!("get pod {pod} -o jsonpath={{{ready}}}"));
        assert_eq!(ready, "False", "{pod} is not an endpoint");
    }
    let why = cluster.setpoint_at(0, &format!("why pod/{}", lost[0]));
    let because = "it has tolerated a taint of its node for as long as it may";
    assert!(why.stdout.contains(because), "{}{}", why.stdout, why.stderr);
    let expected = format!("Marking for deletion Pod default/{}", lost[0]);
    eventually("the eviction is an Event", || {
        let events = events(&kubectl, "TaintManagerEviction");
        events
            .contains(&expected)
            .then_some(())
            .ok_or(format!("{events:?}"))
    });

    // The agent ends the Pods that were deleted, and starts none of them again.
    cluster.process("node-agent-1").restart();
    until_state(&kubectl, "node-1", HEALTHY);
    for pod in &lost {
        kubectl.ok(&format!("wait pod/{pod} --for=delete --timeout=60s"));
    }
    assert_eq!(pods(&kubectl).len(), 4);
    assert!(names_on(&kubectl, "node-1").is_empty());
}

/// Kills an agent, and the processes that hold its containers.
fn kill_all(cluster: &mut Cluster, node: &str) {
    let agent = node.replace("node", "node-agent");
    cluster.process(&agent).kill();
    let swept = Command::new(program("node-agent").expect("it was built"))
        .arg("sweep")
        .arg(cluster.node(node))
        .output()
        .expect("it was built");
    assert!(swept.status.success(), "{swept:?}");
}

/// Checks N6: the agent need not be restarted.
#[test]
fn a_node_whose_agent_was_suspended_is_ready_again_as_soon_as_it_answers() {
    let mut cluster = cluster(2, 0);
    let kubectl = cluster.kubectl();
    create(&kubectl);
    let agent = cluster.process("node-agent-1");
    agent.signal(Signal::SIGSTOP);
    let stopped = format!("{UNKNOWN} {TAINT} {TAINT}");
    until_state(&kubectl, "node-1", &stopped);
    cluster.process("node-agent-1").signal(Signal::SIGCONT);
    until_state(&kubectl, "node-1", HEALTHY);
    let events = events(&kubectl, "NodeNotReady");
    let expected = "Node node-1 status is now: NodeNotReady";
    assert!(events.iter().any(|event| event == expected), "{events:?}");
}

#[test]
fn a_gateway_and_a_controller_that_were_away_evict_nobody() {
    let mut cluster = cluster(0, 3);
    let kubectl = cluster.kubectl();
    create(&kubectl);
    let before = placement(&kubectl);
    cluster.process("gateway-0").kill();
    sleep(LONG_ENOUGH);
    cluster.process("gateway-0").restart();
    cluster.wait_until_ready();
    cluster.leader("node-lifecycle-controller");
    sleep(LONG_ENOUGH);
    assert_eq!(placement(&kubectl), before);

    cluster
        .process("controller-manager-0")
        .signal(Signal::SIGSTOP);
    sleep(LONG_ENOUGH);
    cluster
        .process("controller-manager-0")
        .signal(Signal::SIGCONT);
    sleep(LONG_ENOUGH);
    assert_eq!(placement(&kubectl), before);
    assert_eq!(events(&kubectl, "TaintManagerEviction"), [] as [&str; 0]);
    assert_eq!(events(&kubectl, "NodeNotReady"), [] as [&str; 0]);
}

#[test]
fn nobody_is_evicted_while_no_node_answers() {
    let mut cluster = cluster(0, 3);
    let kubectl = cluster.kubectl();
    create(&kubectl);
    let before = placement(&kubectl);
    cluster.process("node-agent-0").signal(Signal::SIGSTOP);
    for node in ["node-0-0", "node-0-1", "node-0-2"] {
        until_state(&kubectl, node, &format!("{UNKNOWN} {SIMULATED} {TAINT}"));
    }
    sleep(LONG_ENOUGH);
    cluster.process("node-agent-0").signal(Signal::SIGCONT);
    until_state(&kubectl, "node-0-0", &format!("{HEALTHY} {SIMULATED}"));
    assert_eq!(placement(&kubectl), before);
}

#[test]
fn pods_of_a_deleted_node_are_collected() {
    let mut cluster = cluster(2, 0);
    let kubectl = cluster.kubectl();
    create(&kubectl);
    let lost = names_on(&kubectl, "node-1");
    kill_all(&mut cluster, "node-1");
    kubectl.ok("delete node node-1");
    for pod in &lost {
        kubectl.ok(&format!("wait pod/{pod} --for=delete --timeout=60s"));
    }
    kubectl.ok("rollout status deployment/web --timeout=60s");
    assert_eq!(names_on(&kubectl, "node-0").len(), 4);
}
