//! Webhooks for custom resources.

use serde_json::{Value, json};

use super::{Answer, Plane, rule};

const OBJECTS: &str = "/apis/stable.example.com/v1/namespaces/default/crontabs";

fn definition() -> Value {
    let spec = json!({
        "type": "object",
        "required": ["image"],
        "properties": {
            "image": { "type": "string" },
            "replicas": { "type": "integer", "default": 1 },
            "history": { "type": "object", "properties": {
                "limit": { "type": "integer", "default": 3 },
            } },
        },
    });
    let version = |name: &str, is_stored: bool| {
        json!({
            "name": name,
            "served": true,
            "storage": is_stored,
            "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": {
                "type": "object", "properties": {
                    "spec": spec, "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                },
            } },
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "crontabs.stable.example.com" },
        "spec": {
            "group": "stable.example.com",
            "scope": "Namespaced",
            "names": { "plural": "crontabs", "singular": "crontab", "kind": "CronTab" },
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

fn object(spec: Value) -> Value {
    json!({
        "apiVersion": "stable.example.com/v1",
        "kind": "CronTab",
        "metadata": { "name": "a" },
        "spec": spec,
    })
}

async fn plane(answer: Answer, fields: Value) -> Plane {
    let plane = Plane::mutating(answer, fields).await;
    plane.api.define(definition()).await;
    plane
}

#[tokio::test]
async fn a_custom_object_is_changed_pruned_and_completed() {
    let patch = Answer::Patch(|request| {
        assert!(request["object"]["spec"]["replicas"].is_i64(), "{request}");
        json!([
            { "op": "add", "path": "/spec/image", "value": "i" },
            { "op": "add", "path": "/spec/unknown", "value": 7 },
            { "op": "add", "path": "/spec/history", "value": {} },
        ])
    });
    let plane = plane(patch, json!({ "rules": [rule(&["crontabs"])] })).await;
    // The field that is required is only set by the webhook.
    let created = plane.api.post(OBJECTS, object(json!({}))).await.ok();
    let expected = json!({ "image": "i", "replicas": 1, "history": { "limit": 3 } });
    assert_eq!(created["spec"], expected);
    let path = format!("{OBJECTS}/a");
    assert_eq!(plane.api.get(&path).await.ok()["spec"], expected);
    let patched = json!({ "spec": { "image": null, "replicas": 2 } });
    let patched = plane.api.patch(&path, "merge-patch+json", patched).await;
    assert_eq!(patched.ok()["spec"]["replicas"], 2);
    assert_eq!(patched.ok()["spec"]["image"], "i");
    assert_eq!(patched.ok()["metadata"]["generation"], 2);
}

#[tokio::test]
async fn a_custom_object_is_validated_after_it_was_changed() {
    let patch = Answer::Patch(|_| json!([{ "op": "add", "path": "/spec/image", "value": 7 }]));
    let plane = plane(patch, json!({ "rules": [rule(&["crontabs"])] })).await;
    let spec = json!({ "image": "i" });
    let told = plane
        .api
        .post(OBJECTS, object(spec))
        .await
        .refused(422, "Invalid");
    assert!(told.contains("spec.image"), "{told}");
}

#[tokio::test]
async fn a_rule_for_another_version_gets_the_object_converted() {
    let rules = json!([{
        "operations": ["*"],
        "apiGroups": ["stable.example.com"],
        "apiVersions": ["v2"],
        "resources": ["crontabs"],
    }]);
    let patch = Answer::Patch(|request| {
        assert_eq!(request["object"]["apiVersion"], "stable.example.com/v2");
        assert_eq!(request["kind"]["version"], "v2");
        assert_eq!(request["requestKind"]["version"], "v1");
        json!([{ "op": "replace", "path": "/spec/replicas", "value": 5 }])
    });
    let plane = plane(patch, json!({ "rules": rules })).await;
    let created = plane
        .api
        .post(OBJECTS, object(json!({ "image": "i" })))
        .await
        .ok();
    assert_eq!(created["apiVersion"], "stable.example.com/v1");
    assert_eq!(created["spec"]["replicas"], 5);
}

#[tokio::test]
async fn the_status_of_a_custom_object_is_changed_alone() {
    let patch = Answer::Patch(|_| {
        json!([
            { "op": "add", "path": "/status/phase", "value": "Seen" },
            { "op": "add", "path": "/spec/replicas", "value": 9 },
        ])
    });
    let plane = plane(patch, json!({ "rules": [rule(&["crontabs/status"])] })).await;
    plane
        .api
        .post(OBJECTS, object(json!({ "image": "i" })))
        .await
        .ok();
    let path = format!("{OBJECTS}/a/status");
    let patch = json!({ "status": { "ready": true } });
    let patched = plane.api.patch(&path, "merge-patch+json", patch).await.ok();
    assert_eq!(patched["status"], json!({ "ready": true, "phase": "Seen" }));
    assert_eq!(patched["spec"]["replicas"], 1);
}
