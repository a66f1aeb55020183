//! Pods that their node rejects are replaced with increasing delays.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_tests::{Cluster, Size, eventually};

use crate::web::text;

/// A template that binds its Pods to a node with too few resources.
const TOO_LARGE: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: too-large}
spec:
  replicas: 1
  selector: {matchLabels: {app: too-large}}
  template:
    metadata: {labels: {app: too-large}}
    spec:
      nodeName: node-0
      containers:
      - {name: main, image: web, resources: {requests: {cpu: 100}}}
"#;

/// Checks F6, R8: the delays between attempts double, also across a restart of the controller.
#[test]
fn creates_back_off_while_the_node_rejects_the_pods_of_a_deployment() {
    let mut cluster = Cluster::start(Size {
        process_nodes: 0,
        simulated_nodes: 1,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    let applied = kubectl.with("apply", TOO_LARGE);
    assert!(applied.success, "{}", applied.stderr);
    let rejected = |count: usize| {
        eventually(&format!("{count} Pods were rejected"), || {
            let list = kubectl.json("get pods -l app=too-large");
            let pods = list["items"].as_array().cloned().unwrap_or_default();
            let failed = |pod: &Value| text(pod, "/status/reason") == "OutOfcpu";
            let enough = pods.iter().filter(|pod| failed(pod)).count() >= count;
            enough.then_some(pods).ok_or(list.to_string())
        })
    };
    rejected(2);
    cluster.process("replicaset-controller-0").restart();
    let created = |pod: &Value| -> i64 {
        let created = text(pod, "/metadata/creationTimestamp").parse::<Timestamp>();
        created.expect("a timestamp").as_second()
    };
    let pods = rejected(4);
    let attempts: BTreeSet<_> = pods.iter().map(created).collect();
    let attempts: Vec<_> = attempts.into_iter().collect();
    let delays = attempts.windows(2).map(|pair| pair[1] - pair[0]);
    for (delay, least) in delays.zip([1, 2, 4, 8]) {
        assert!(delay >= least, "created at {attempts:?}");
    }
    assert_eq!(pods.len(), attempts.len(), "one Pod for each attempt");
}
