//! Events as `kubectl describe` shows them; repeated Events are counted.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use serde_json::{Value, json};
use setpoint_tests::{Cluster, Kubectl, Size, eventually};

use crate::web;

/// Returns the lines of `kubectl describe` below "Events:", with single spaces.
fn events(kubectl: &Kubectl, what: &str) -> Vec<String> {
    let text = kubectl.ok(&format!("describe {what} -n production"));
    let (_, events) = text.split_once("Events:").unwrap_or_default();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    events.lines().map(words).collect()
}

/// Waits for an Event that contains these words; ages are ignored.
pub fn wait_for_event(kubectl: &Kubectl, what: &str, before: &str, after: &str) {
    eventually(&format!("{what}: {before} … {after}"), || {
        let lines = events(kubectl, what);
        let found = lines.iter().any(|line| {
            line.starts_with(&format!("{before} ")) && line.contains(&format!(" {after}"))
        });
        found.then_some(()).ok_or_else(|| lines.join("\n"))
    });
}

#[test]
fn describe_shows_the_events_of_each_controller_as_in_kubernetes() {
    let cluster = Cluster::start(Size::default());
    let kubectl = cluster.kubectl();
    web::apply(&kubectl);
    let pods = web::until_ready(&kubectl, 3);
    let pod = web::text(&pods[0], "/metadata/name");
    let set = web::text(&pods[0], "/metadata/ownerReferences/0/name");
    let node = web::text(&pods[0], "/spec/nodeName");
    wait_for_event(
        &kubectl,
        "deployment web-frontend",
        "Normal ScalingReplicaSet",
        &format!("deployment-controller Scaled up replica set {set} from 0 to 3"),
    );
    wait_for_event(
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
        wait_for_event(&kubectl, &of_pod, &format!("Normal {reason}"), &message);
    }
    kubectl.ok("scale deployment/web-frontend -n production --replicas=2");
    web::until_ready(&kubectl, 2);
    wait_for_event(
        &kubectl,
        "deployment web-frontend",
        "Normal ScalingReplicaSet",
        &format!("deployment-controller Scaled down replica set {set} from 3 to 2"),
    );
    wait_for_event(
        &kubectl,
        &format!("rs {set}"),
        "Normal SuccessfulDelete",
        "replicaset-controller Deleted pod: web-frontend-",
    );
    every_event_has_its_component_and_instance(&kubectl);
}

fn every_event_has_its_component_and_instance(kubectl: &Kubectl) {
    let list = kubectl.json("get events -A");
    for event in list["items"].as_array().unwrap() {
        let (component, instance) = (
            web::text(event, "/reportingComponent"),
            web::text(event, "/reportingInstance"),
        );
        let loops = match component {
            "deployment-controller" | "replicaset-controller" => instance.starts_with(component),
            "default-scheduler" => instance.starts_with("scheduler-"),
            "node-controller" => instance.starts_with("controller-manager-"),
            "kubelet" => instance == web::text(event, "/source/host"),
            _ => false,
        };
        assert!(loops, "no component: {event}");
        assert_eq!(web::text(event, "/source/component"), component);
    }
}

fn pod(name: &str, spec: Value) -> String {
    let meta = json!({"name": name, "namespace": "production"});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}).to_string()
}

#[test]
fn repeated_events_are_counted_and_waiting_pods_have_a_reason() {
    let cluster = Cluster::start(Size::default());
    let kubectl = cluster.kubectl();
    web::apply(&kubectl);
    let crashes = json!({"containers": [{"name": "c", "image": "busybox", "command": ["sh", "-c", "exit 1"]}]});
    let waits = json!({"nodeSelector": {"disk": "none"}, "containers": [{"name": "c", "image": "busybox"}]});
    for (name, spec) in [("crashes", crashes), ("waits", waits)] {
        let output = kubectl.with("apply", &pod(name, spec));
        assert!(output.success, "{}", output.stderr);
    }
    wait_for_event(
        &kubectl,
        "pod waits",
        "Warning FailedScheduling",
        "default-scheduler 0/3 nodes are available:",
    );
    wait_for_event(
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
