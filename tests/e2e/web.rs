//! The Deployment of the README's example, and queries about it.

use serde_json::Value;
use setpoint_tests::{Kubectl, eventually};

/// The manifest of the README's example.
pub fn manifest() -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../deploy/manifests/web-frontend.yaml"
    );
    std::fs::read_to_string(path).expect("the manifest can be read")
}

/// Applies the manifest and waits until it is rolled out.
pub fn apply(kubectl: &Kubectl) {
    let output = kubectl.with("apply", &manifest());
    assert!(output.success, "{}", output.stderr);
    kubectl.ok("rollout status deployment/web-frontend -n production --timeout=60s");
}

/// Returns the Pods of the Deployment that are not being deleted.
pub fn pods(kubectl: &Kubectl) -> Vec<Value> {
    let list = kubectl.json("get pods -n production -l app=web-frontend");
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let stays = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null();
    items.into_iter().filter(stays).collect()
}

/// Returns whether the Pod is Ready.
pub fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(ready))
}

/// Waits until exactly `count` Pods exist and are Ready, and returns them.
pub fn until_ready(kubectl: &Kubectl, count: usize) -> Vec<Value> {
    eventually(&format!("{count} Pods are Ready"), || {
        let pods = pods(kubectl);
        let settled = pods.len() == count && pods.iter().all(is_ready);
        settled
            .then_some(pods.clone())
            .ok_or_else(|| kubectl.run("get pods -n production -o wide").stdout)
    })
}

/// Returns a text field of an object by its JSON pointer.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
