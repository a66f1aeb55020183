//! The resource usage of nodes and Pods, as `kubectl top` and the pages of agents show it.

use serde_json::Value;
use setpoint_tests::{Cluster, Kubectl, Size, eventually, http};

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
    the_agents_report_it(&kubectl);
    an_agent_serves_nobody_without_a_proof(&cluster, &kubectl);
}

/// Checks DG6: without a proof that the caller has the agents' key, an agent does not serve its pages.
fn an_agent_serves_nobody_without_a_proof(cluster: &Cluster, kubectl: &Kubectl) {
    let status = &kubectl.json("get node node-0")["status"];
    let addresses = status["addresses"].as_array().expect("a list of addresses");
    let internal = addresses
        .iter()
        .find(|address| address["type"] == "InternalIP");
    let address = internal
        .and_then(|internal| internal["address"].as_str())
        .expect("an address");
    let port = &status["daemonEndpoints"]["kubeletEndpoint"]["Port"];
    let answer = http::get(
        &cluster.process_at(&format!("{address}:{port}")),
        "/stats/summary",
    );
    let answer = answer.expect("the agent answers");
    assert_eq!(answer.status, 401, "{}", answer.body);
}

/// The pages of the kubelet, through the gateway.
fn the_agents_report_it(kubectl: &Kubectl) {
    let page = |node: &str, path: &str| {
        let page = kubectl.ok(&format!("get --raw /api/v1/nodes/{node}/proxy/{path}"));
        serde_json::from_str::<Value>(&page).expect("the page is JSON")
    };
    let only = "stats/summary?only_cpu_and_memory=true";
    let (real, brief) = (page("node-0", "stats/summary"), page("node-0", only));
    for summary in [&real, &brief] {
        assert_eq!(summary["node"]["nodeName"], "node-0");
        assert!(summary["node"]["cpu"]["usageCoreNanoSeconds"].is_u64());
        assert!(summary["node"]["memory"]["workingSetBytes"].is_u64());
        let pods = summary["pods"].as_array().expect("a list of Pods");
        let [pod] = pods.as_slice() else {
            panic!("{summary}");
        };
        assert_eq!(pod["podRef"]["name"], "busy");
        assert!(pod["containers"][0]["cpu"]["usageNanoCores"].as_u64() > Some(0));
        assert!(pod["memory"]["workingSetBytes"].as_u64() > Some(0));
    }
    assert!(real["node"]["fs"]["capacityBytes"].is_u64());
    assert!(real["pods"][0]["ephemeral-storage"]["usedBytes"].is_u64());
    assert!(brief["node"]["fs"].is_null() && brief["pods"][0]["ephemeral-storage"].is_null());
    let simulated = page("node-1", only);
    assert_eq!(simulated["pods"][0]["podRef"]["name"], "simulated");
    assert_eq!(simulated["pods"][0]["cpu"]["usageNanoCores"], 300_000_000);
    let metrics = kubectl.ok("get --raw /api/v1/nodes/node-0/proxy/metrics/resource");
    let sample =
        "container_cpu_usage_seconds_total{container=\"main\",namespace=\"default\",pod=\"busy\"}";
    assert!(metrics.contains(sample), "{metrics}");
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
