//! Events as users of kubectl know them: who tells what of whom, counted instead of repeated.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use serde_json::{Value, json};
use setpoint_tests::{Cluster, Kubectl, Size, eventually};

use crate::web;

/// The lines of `kubectl describe` below "Events:", each without the space between its columns.
fn events(kubectl: &Kubectl, what: &str) -> Vec<String> {
    let text = kubectl.ok(&format!("describe {what} -n production"));
    let (_, events) = text.split_once("Events:").unwrap_or_default();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    events.lines().map(words).collect()
}

/// Waits for an Event with these words, apart from its age.
pub fn told(kubectl: &Kubectl, what: &str, before: &str, after: &str) {
    eventually(&format!("{what}: {before} … {after}"), || {
        let lines = events(kubectl, what);
        let found = lines.iter().any(|line| {
            line.starts_with(&format!("{before} ")) && line.contains(&format!(" {after}"))
        });
        found.then_some(()).ok_or_else(|| lines.join("\n"))
    });
}

#[test]
fn describe_tells_what_each_loop_did_in_the_usual_words() {
    let cluster = Cluster::start(Size::default());
    let kubectl = cluster.kubectl();
    web::apply(&kubectl);
    let pods = web::until_ready(&kubectl, 3);
    let pod = web::text(&pods[0], "/metadata/name");
    let set = web::text(&pods[0], "/metadata/ownerReferences/0/name");
    let node = web::text(&pods[0], "/spec/nodeName");
    told(
        &kubectl,
        "deployment web-frontend",
        "Normal ScalingReplicaSet",
        &format!("deployment-controller Scaled up replica set {set} from 0 to 3"),
    );
    told(
        &kubectl,
        &format!("rs {set}"),
        "Normal SuccessfulCreate",
        &format!("replicaset-controller Created pod: {pod}"),
    );
    let of_pod = format!("pod {pod}");
    for (reason, message) in [
        (
            "Scheduled",
            format!("default-scheduler Successfully assigned production/{pod} to {node}"),
        ),
        ("Created", "kubelet Created container: nginx".to_owned()),
        ("Started", "kubelet Started container nginx".to_owned()),
    ] {
        told(&kubectl, &of_pod, &format!("Normal {reason}"), &message);
    }
    kubectl.ok("scale deployment/web-frontend -n production --replicas=2");
    web::until_ready(&kubectl, 2);
    told(
        &kubectl,
        "deployment web-frontend",
        "Normal ScalingReplicaSet",
        &format!("deployment-controller Scaled down replica set {set} from 3 to 2"),
    );
    told(
        &kubectl,
        &format!("rs {set}"),
        "Normal SuccessfulDelete",
        "replicaset-controller Deleted pod: web-frontend-",
    );
    every_event_names_its_loop(&kubectl);
}

fn every_event_names_its_loop(kubectl: &Kubectl) {
    let list = kubectl.json("get events -A");
    for event in list["items"].as_array().unwrap() {
        let (component, instance) = (
            web::text(event, "/reportingComponent"),
            web::text(event, "/reportingInstance"),
        );
        let loops = match component {
            "deployment-controller" | "replicaset-controller" => instance.starts_with(component),
            "default-scheduler" => instance.starts_with("scheduler-"),
            "kubelet" => instance == web::text(event, "/source/host"),
            _ => false,
        };
        assert!(loops, "nobody reports it: {event}");
        assert_eq!(web::text(event, "/source/component"), component);
    }
}

fn pod(name: &str, spec: Value) -> String {
    let meta = json!({"name": name, "namespace": "production"});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}).to_string()
}

#[test]
fn what_happens_again_is_counted_and_what_waits_says_why() {
    let cluster = Cluster::start(Size::default());
    let kubectl = cluster.kubectl();
    web::apply(&kubectl);
    let crashes = json!({"containers": [{"name": "c", "image": "busybox", "command": ["sh", "-c", "exit 1"]}]});
    let waits = json!({"nodeSelector": {"disk": "none"}, "containers": [{"name": "c", "image": "busybox"}]});
    for (name, spec) in [("crashes", crashes), ("waits", waits)] {
        let output = kubectl.with("apply", &pod(name, spec));
        assert!(output.success, "{}", output.stderr);
    }
    told(
        &kubectl,
        "pod waits",
        "Warning FailedScheduling",
        "default-scheduler 0/3 nodes are available:",
    );
    told(
        &kubectl,
        "pod crashes",
        "Warning BackOff",
        "kubelet Back-off restarting failed container c in pod crashes_production(",
    );
    eventually("the second start is counted", || {
        let list = kubectl.json(
            "get events -n production --field-selector reason=Started,involvedObject.name=crashes",
        );
        let events = list["items"].as_array().cloned().unwrap_or_default();
        let counts: Vec<_> = events.iter().map(|event| event["count"].as_i64()).collect();
        (counts.len() == 1 && counts[0] >= Some(2))
            .then_some(())
            .ok_or_else(|| format!("{counts:?}"))
    });
    eventually("describe shows the count", || {
        let lines = events(&kubectl, "pod crashes");
        let counted = lines
            .iter()
            .any(|line| line.starts_with("Normal Started ") && line.contains("(x"));
        counted.then_some(()).ok_or_else(|| lines.join("\n"))
    });
}
