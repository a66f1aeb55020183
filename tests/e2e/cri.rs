//! Pods as sandboxes of containerd.

use serde_json::Value;
use setpoint_tests::{Cluster, Kubectl, eventually};

use crate::containerd::{CriNode, IMAGE, NODE, until_ready};
use crate::cri_pods::{
    a_pod_has_the_handler_of_its_runtime_class, a_pod_has_users_of_its_own_or_does_not_run,
    a_private_image_is_pulled_by_the_secret_of_the_account,
};
use crate::forward::Forward;
use crate::web::{is_ready, text};

fn deployment() -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 3
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: {IMAGE}
        command: [sh, -c, 'echo serving; exec busybox httpd -f -p 8080 -h /srv']
        readinessProbe: {{httpGet: {{path: /mark, port: 8080}}, periodSeconds: 1}}
        resources: {{limits: {{cpu: 200m, memory: 32Mi}}}}
"
    )
}

/// One test, because starting a cluster takes most of the time.
#[test]
fn a_deployment_runs_on_containerd_through_rollouts_and_kills_and_leaves_nothing() {
    let Some(mut node) = CriNode::start() else {
        return;
    };
    let mut cluster = node.cluster();
    let kubectl = cluster.kubectl();
    the_node_reports_its_runtime(&kubectl);
    a_web_server_becomes_available(&node, &kubectl);
    kubectl_reaches_its_containers(&kubectl);
    a_rollout_and_a_scale_down_leave_no_sandbox(&node, &kubectl);
    let before = node.all();
    cluster.process("node-agent-0").kill();
    assert_eq!(node.all(), before, "an agent leaves its Pods");
    node.start_agent(&mut cluster);
    pods_stay_beside_a_new_one(&node, &kubectl, &before, 2);
    let before = node.all();
    a_killed_containerd_is_waited_for(&mut node, &mut cluster, &kubectl);
    pods_stay_beside_a_new_one(&node, &kubectl, &before, 3);
    a_network_without_a_configuration_keeps_pods_away(&node, &kubectl);
    kubectl.ok("create namespace production");
    a_private_image_is_pulled_by_the_secret_of_the_account(&node, &kubectl);
    a_pod_has_the_handler_of_its_runtime_class(&kubectl);
    a_pod_has_users_of_its_own_or_does_not_run(&kubectl);
    kubectl.ok("delete deployment web");
    eventually("nothing is left of the Deployment", || {
        let all = node.all();
        all.is_empty().then_some(()).ok_or(format!("{all:?}"))
    });
}

fn the_node_reports_its_runtime(kubectl: &Kubectl) {
    let node = kubectl.json(&format!("get node {NODE}"));
    let version = text(&node, "/status/nodeInfo/containerRuntimeVersion");
    assert!(version.starts_with("containerd://"), "{version}");
    let label = node.pointer("/metadata/labels/setpoint.dev~1runtime");
    assert_eq!(label.and_then(Value::as_str), Some("cri"));
    let images = node["status"]["images"].to_string();
    assert!(images.contains(IMAGE), "{images}");
}

fn a_web_server_becomes_available(node: &CriNode, kubectl: &Kubectl) {
    let applied = kubectl.with("apply", &deployment());
    assert!(applied.success, "{}", applied.stderr);
    kubectl.ok("rollout status deployment/web --timeout=60s");
    let pods = pods(kubectl, 3);
    assert_eq!(node.sandboxes().len(), 3);
    let id = text(&pods[0], "/status/containerStatuses/0/containerID");
    let id = id
        .strip_prefix("containerd://")
        .expect("an id of containerd");
    assert!(node.all().iter().any(|known| known == id), "{id}");
}

/// Waits until exactly this many Pods exist, all Ready, and returns them.
fn pods(kubectl: &Kubectl, count: usize) -> Vec<Value> {
    eventually(&format!("{count} Pods are Ready"), || {
        let list = kubectl.json("get pods -l app=web");
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let settled = items.len() == count && items.iter().all(is_ready);
        settled
            .then_some(items)
            .ok_or_else(|| kubectl.run("get pods -o wide").stdout)
    })
}

fn kubectl_reaches_its_containers(kubectl: &Kubectl) {
    let pod = &pods(kubectl, 3)[0];
    let (name, address) = (text(pod, "/metadata/name"), text(pod, "/status/podIP"));
    assert_eq!(kubectl.ok(&format!("logs {name}")), "serving\n");
    let seen = kubectl.ok(&format!("exec {name} -- sh -c hostname;cat</etc/hosts"));
    assert!(seen.starts_with(&format!("{name}\n")), "{seen}");
    assert!(seen.contains(&format!("{address}\t{name}")), "{seen}");
    let ended = kubectl.run(&format!("exec {name} -- sh -c exit${{IFS}}7"));
    assert_eq!(ended.code, 7, "{}", ended.stderr);
    let mut command = kubectl.command(&format!("port-forward pod/{name} :8080"));
    let forward = Forward::start(&mut command);
    for _ in 0..2 {
        let answer = forward.get("/mark");
        assert!(answer.ends_with("from the image"), "{answer}");
    }
}

fn a_rollout_and_a_scale_down_leave_no_sandbox(node: &CriNode, kubectl: &Kubectl) {
    let before = node.sandboxes();
    kubectl.ok("set env deployment/web VERSION=2");
    kubectl.ok("rollout status deployment/web --timeout=60s");
    let after = node.until_sandboxes(3);
    assert!(before.iter().all(|old| !after.contains(old)), "{after:?}");
    kubectl.ok("scale deployment/web --replicas=1");
    node.until_sandboxes(1);
    pods(kubectl, 1);
}

/// Scales the Deployment up. Once the new Pod runs, the earlier ones have been looked at as well.
fn pods_stay_beside_a_new_one(
    node: &CriNode,
    kubectl: &Kubectl,
    before: &[String],
    replicas: usize,
) {
    kubectl.ok(&format!("scale deployment/web --replicas={replicas}"));
    kubectl.ok("rollout status deployment/web --timeout=60s");
    let pods = pods(kubectl, replicas);
    let restarts = |pod: &Value| {
        pod.pointer("/status/containerStatuses/0/restartCount")
            .cloned()
    };
    assert!(pods.iter().all(|pod| restarts(pod) == Some(0.into())));
    let after = node.all();
    assert_eq!(
        after.len(),
        2 * replicas,
        "a sandbox and a container each: {after:?}"
    );
    let stays = |id: &String| after.contains(id);
    assert!(before.iter().all(stays), "{before:?} {after:?}");
}

/// The agent waits as well if it starts first.
fn a_killed_containerd_is_waited_for(node: &mut CriNode, cluster: &mut Cluster, kubectl: &Kubectl) {
    node.containerd.kill();
    eventually("the node says that its runtime does not answer", || {
        let node = kubectl.json(&format!("get node {NODE}"));
        let ready = condition(&node, "Ready");
        let is_down = ready["status"] == "False"
            && text(&ready, "/message").starts_with("container runtime is down: ");
        is_down.then_some(()).ok_or(ready.to_string())
    });
    cluster.process("node-agent-0").kill();
    node.start_agent(cluster);
    eventually("the agent says what it waits for", || {
        let log = cluster.log("node-agent-0");
        let says = log.contains("waiting for the container runtime");
        says.then_some(()).ok_or(log)
    });
    node.containerd.restart();
    until_ready(kubectl);
}

fn a_network_without_a_configuration_keeps_pods_away(node: &CriNode, kubectl: &Kubectl) {
    node.containerd.remove_network();
    eventually("the node has the taint of its network", || {
        let node = kubectl.json(&format!("get node {NODE}"));
        let unavailable = condition(&node, "NetworkUnavailable");
        let says = unavailable["status"] == "True"
            && text(&unavailable, "/message").contains("cni plugin not initialized");
        let taints = node["spec"]["taints"].to_string();
        let tainted = taints.contains("node.kubernetes.io/network-unavailable");
        (says && tainted)
            .then_some(())
            .ok_or(format!("{unavailable} {taints}"))
    });
    node.containerd.add_network();
    until_ready(kubectl);
    eventually("the node has no taints", || {
        let node = kubectl.json(&format!("get node {NODE}"));
        let taints = node["spec"]["taints"].as_array().cloned();
        let taints = taints.unwrap_or_default();
        taints.is_empty().then_some(()).ok_or(format!("{taints:?}"))
    });
}

/// Returns a condition of a node; null if it has none of this type.
fn condition(node: &Value, kind: &str) -> Value {
    let conditions = node["status"]["conditions"].as_array().into_iter();
    let mut conditions = conditions.flatten();
    let found = conditions.find(|condition| condition["type"] == kind);
    found.cloned().unwrap_or_default()
}
