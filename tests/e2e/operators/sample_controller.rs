//! An operator of the Python client's dynamic client with two replicas: `sample_controller.py`.

use std::process::Command;

use serde_json::Value;
use setpoint_tests::{Cluster, Kubectl, Size, eventually};

use super::{Operator, apply, beside, define, field, until, until_gone};
use crate::clients::client;

const LEASE: &str = "lease/sample-controller";
const SERVER: &str = "deployment/server";

fn foo(name: &str, deployment: &str, replicas: usize) -> String {
    format!(
        "apiVersion: samplecontroller.example.com/v1alpha1
kind: Foo
metadata: {{name: {name}}}
spec: {{deploymentName: {deployment}, replicas: {replicas}}}
"
    )
}

fn replica(cluster: &Cluster, identity: &str) -> Option<Operator> {
    let mut command = Command::new(client("python")?);
    command
        .arg("-u")
        .arg(beside("sample_controller.py"))
        .arg(identity);
    Some(Operator::start(cluster, identity, command))
}

#[test]
fn a_standby_of_an_operator_takes_over_and_makes_nothing_twice() {
    let cluster = Cluster::start(Size {
        process_nodes: 0,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    define(&kubectl, "foo.yaml");
    let replicas = ["first", "second"].map(|identity| replica(&cluster, identity));
    let [Some(first), Some(second)] = replicas else {
        return;
    };
    let mut replicas = [first, second];
    eventually("a replica leads", || {
        let logs = replicas.each_ref().map(Operator::log).concat();
        logs.contains("started leading").then_some(()).ok_or(logs)
    });
    it_keeps_a_deployment(&kubectl);
    it_takes_over(&kubectl, &mut replicas);
    nothing_was_made_twice(&cluster, &replicas);
    it_leaves_objects_of_others(&kubectl);
    kubectl.ok("delete foo one");
    until_gone(&kubectl, SERVER);
}

fn it_keeps_a_deployment(kubectl: &Kubectl) {
    apply(kubectl, &foo("one", "server", 1));
    until(kubectl, "foo/one", ".status.availableReplicas", "1");
    kubectl.ok("scale deployment/server --replicas=3");
    until(kubectl, SERVER, ".spec.replicas", "1");
    let generation = field(kubectl, "foo/one", ".metadata.generation");
    assert_eq!(generation, "1", "the status does not count");
}

fn it_takes_over(kubectl: &Kubectl, replicas: &mut [Operator; 2]) {
    let uid = field(kubectl, SERVER, ".metadata.uid");
    let holder = field(kubectl, LEASE, ".spec.holderIdentity");
    if holder == "second" {
        replicas.swap(0, 1);
    }
    let [leader, standby] = replicas;
    standby.logs(&format!("lease held by {holder}"), 1);
    leader.process.kill();
    apply(kubectl, &foo("one", "server", 2));
    apply(kubectl, &foo("two", "another", 1));
    standby.logs("started leading", 1);
    until(kubectl, "foo/one", ".status.availableReplicas", "2");
    until(kubectl, "foo/two", ".status.availableReplicas", "1");
    assert_ne!(field(kubectl, LEASE, ".spec.holderIdentity"), holder);
    assert_eq!(field(kubectl, SERVER, ".metadata.uid"), uid);
    let waits = leader.log().matches("lease held by").count();
    leader.process.restart();
    leader.logs("lease held by", waits + 1);
}

fn nothing_was_made_twice(cluster: &Cluster, replicas: &[Operator; 2]) {
    for deployment in ["server", "another"] {
        let object = format!("deployment/{deployment}");
        assert_eq!(creations(cluster, &object), 1);
        let told = format!("created Deployment {deployment}\n");
        let logs = replicas.each_ref().map(Operator::log);
        assert_eq!(logs.concat().matches(&told).count(), 1);
    }
    let sets = cluster.kubectl().ok("get replicasets -o name");
    assert_eq!(sets.lines().count(), 2, "{sets}");
}

/// Returns how often an object was created, by its history.
fn creations(cluster: &Cluster, object: &str) -> usize {
    let history = cluster.setpoint_json(0, &format!("history {object}"));
    let history = history.expect("the object exists");
    assert_eq!(history["ends"], "created", "{history}");
    let versions = history["versions"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let created = |version: &&Value| version["what"] == "created";
    versions.iter().filter(created).count()
}

fn it_leaves_objects_of_others(kubectl: &Kubectl) {
    kubectl.ok("create deployment taken --image=nginx:1.25");
    apply(kubectl, &foo("three", "taken", 5));
    eventually("the conflict is reported", || {
        let events = kubectl.ok("get events --field-selector reason=ErrResourceExists");
        events
            .contains("taken is not managed by Foo")
            .then_some(())
            .ok_or(events)
    });
    assert_eq!(field(kubectl, "deployment/taken", ".spec.replicas"), "1");
}
