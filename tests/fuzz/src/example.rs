//! Valid objects of each stored kind.

use serde_json::{Value, json};
use setpoint_codec::{Kind, kinds};

/// Returns the kind with this number and the JSON of an object.
pub fn example(number: u8) -> (&'static Kind, Value) {
    let count = kinds().iter().count();
    let kind = kinds().iter().nth(usize::from(number) % count);
    let kind = kind.expect("the number is below the count");
    (kind, document(kind, "web"))
}

/// Returns the JSON of a valid object of this kind and name.
pub fn document(kind: &Kind, name: &str) -> Value {
    let mut document = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": { "name": name, "labels": { "app": "web", "tier": "5" } },
    });
    let specific = specific(kind);
    for (key, value) in specific.as_object().into_iter().flatten() {
        document[key] = value.clone();
    }
    document
}

fn specific(kind: &Kind) -> Value {
    match kind.kind.as_str() {
        "ConfigMap" => json!({ "data": { "a": "b" } }),
        "Secret" => json!({ "type": "Opaque", "data": { "a": "Yg==" } }),
        "Pod" => json!({ "spec": pod_spec() }),
        "Node" => json!({ "spec": { "taints": [{ "key": "a", "effect": "NoSchedule" }] } }),
        "Service" => json!({ "spec": {
            "selector": { "app": "web" },
            "ports": [{ "name": "http", "port": 80, "targetPort": "http", "protocol": "TCP" }],
        } }),
        "Lease" => json!({ "spec": { "holderIdentity": "a", "leaseDurationSeconds": 15 } }),
        "Event" => json!({
            "involvedObject": { "kind": "Pod", "namespace": "default", "name": "web" },
            "reason": "Seen", "message": "it was seen", "type": "Normal", "count": 1,
            "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:05Z",
        }),
        "ReplicaSet" | "Deployment" => json!({ "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": pod_spec() },
        } }),
        "PodTemplate" => json!({ "template": {
            "metadata": { "labels": { "app": "web" } }, "spec": pod_spec(),
        } }),
        "ControllerRevision" => json!({ "revision": 1, "data": { "a": "b" } }),
        "PriorityClass" => json!({ "value": 100 }),
        "Role" | "ClusterRole" => json!({ "rules": [{
            "verbs": ["get"], "apiGroups": [""], "resources": ["pods"],
        }] }),
        "RoleBinding" | "ClusterRoleBinding" => json!({
            "roleRef": { "kind": "ClusterRole", "name": "web" },
            "subjects": [{ "kind": "User", "name": "web" }],
        }),
        _ => json!({}),
    }
}

fn pod_spec() -> Value {
    json!({
        "containers": [{
            "name": "web",
            "image": "nginx:1.25",
            "ports": [{ "name": "http", "containerPort": 80 }],
            "env": [{ "name": "A", "value": "b" }],
            "resources": { "requests": { "cpu": "100m" }, "limits": { "memory": "1Gi" } },
            "volumeMounts": [{ "name": "scratch", "mountPath": "/scratch" }],
            "readinessProbe": { "httpGet": { "path": "/", "port": "http" } },
        }],
        "volumes": [{ "name": "scratch", "emptyDir": {} }],
        "tolerations": [{ "key": "a", "operator": "Exists" }],
        "nodeSelector": { "disk": "ssd" },
    })
}
