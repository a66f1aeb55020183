//! The requests that webhooks are sent, for each operation and subresource.

use serde_json::{Value, json};

use super::{Answer, Plane, denial, merged, rule};
use crate::http::api::{CONFIGMAPS, DEPLOYMENTS, configmap, deployment};

const PODS: &str = "/api/v1/namespaces/default/pods";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

fn pod() -> Value {
    json!({
        "metadata": { "name": "a" },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    })
}

#[tokio::test]
async fn a_request_says_who_does_what_to_which_object() {
    let plane = Plane::validating(Answer::Allow, json!({})).await;
    let path = format!("{CONFIGMAPS}?fieldManager=tester");
    plane.api.post(&path, configmap("a")).await.ok();
    let calls = plane.server.calls();
    let review = &calls[0].review;
    assert_eq!(review["kind"], "AdmissionReview");
    assert_eq!(review["apiVersion"], "admission.k8s.io/v1");
    let request = &review["request"];
    let kind = json!({ "group": "", "version": "v1", "kind": "ConfigMap" });
    let resource = json!({ "group": "", "version": "v1", "resource": "configmaps" });
    for (field, value) in [
        ("kind", kind.clone()),
        ("resource", resource.clone()),
        ("requestKind", kind),
        ("requestResource", resource),
        ("name", "a".into()),
        ("namespace", "default".into()),
        ("operation", "CREATE".into()),
        ("dryRun", false.into()),
        ("oldObject", Value::Null),
    ] {
        assert_eq!(request[field], value, "{field}");
    }
    assert_eq!(request["object"]["kind"], "ConfigMap");
    assert_eq!(request["object"]["data"]["a"], "b");
    assert_eq!(request["options"]["kind"], "CreateOptions");
    assert_eq!(request["options"]["fieldManager"], "tester");
    assert!(request["userInfo"]["username"].is_string());
    assert!(request["uid"].as_str().unwrap().len() == 36);
    assert_eq!(request.get("subResource"), None);
}

#[tokio::test]
async fn updates_and_deletions_are_sent_with_the_old_object() {
    let plane = Plane::validating(Answer::Allow, json!({})).await;
    plane.create().await.ok();
    plane.server.calls();
    let path = format!("{CONFIGMAPS}/a");
    let patch = json!({ "data": { "a": "c" } });
    plane.api.patch(&path, "merge-patch+json", patch).await.ok();
    let request = plane.server.request();
    let told = (&request["operation"], &request["options"]["kind"]);
    assert_eq!(told, (&json!("UPDATE"), &json!("UpdateOptions")));
    assert_eq!(request["object"]["data"]["a"], "c");
    assert_eq!(request["oldObject"]["data"]["a"], "b");
    plane.settled().await;
    plane.api.delete(&path).await.ok();
    let request = plane.server.request();
    let told = (&request["operation"], &request["options"]["kind"]);
    assert_eq!(told, (&json!("DELETE"), &json!("DeleteOptions")));
    assert_eq!(request["object"], Value::Null);
    assert_eq!(request["oldObject"]["data"]["a"], "c");
}

#[tokio::test]
async fn each_object_of_a_collection_is_sent_when_it_is_deleted() {
    let plane = Plane::validating(Answer::Allow, json!({})).await;
    for name in ["a", "b"] {
        plane.api.post(CONFIGMAPS, configmap(name)).await.ok();
    }
    plane.settled().await;
    plane.server.calls();
    plane.api.delete(CONFIGMAPS).await.ok();
    let calls = plane.server.calls();
    let names = calls.iter().map(|call| &call.review["request"]["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
}

#[tokio::test]
async fn a_denied_deletion_deletes_nothing_and_a_deletion_cannot_be_changed() {
    let denied = Answer::Deny(|| json!({ "message": "no" }));
    let rules = json!([merged(
        rule(&["configmaps"]),
        json!({ "operations": ["DELETE"] })
    )]);
    let plane = Plane::mutating(denied, json!({ "rules": rules })).await;
    plane.create().await.ok();
    let path = format!("{CONFIGMAPS}/a");
    let told = denial(&plane.api.delete(&path).await).unwrap();
    assert_eq!(
        told,
        "admission webhook \"a.example.com\" denied the request: no"
    );
    assert_eq!(plane.server.paths(), ["a"]);
    let patch = Answer::Patch(|_| json!([{ "op": "add", "path": "/a", "value": 1 }]));
    plane.server.answer("a", patch);
    let told = plane.api.delete(&path).await.refused(500, "InternalError");
    let error = "admission webhook \"a.example.com\" attempted to modify the object, which is not supported for this operation";
    assert_eq!(told, format!("Internal error occurred: {error}"));
    plane.api.get(&path).await.ok();
}

#[tokio::test]
async fn the_scale_is_changed_as_an_object_of_its_own() {
    let scale = Answer::Patch(|request| {
        assert_eq!(request["kind"]["kind"], "Scale");
        assert_eq!(request["subResource"], "scale");
        assert_eq!(request["oldObject"]["spec"]["replicas"], 3);
        json!([{ "op": "replace", "path": "/spec/replicas", "value": 2 }])
    });
    let fields = json!({ "rules": [rule(&["deployments/scale"])] });
    let plane = Plane::mutating(scale, fields).await;
    plane.api.post(DEPLOYMENTS, deployment("web")).await.ok();
    let path = format!("{DEPLOYMENTS}/web");
    let patch = json!({ "spec": { "replicas": 5 } });
    let scaled = plane
        .api
        .patch(&format!("{path}/scale"), "merge-patch+json", patch)
        .await;
    assert_eq!(scaled.ok()["spec"]["replicas"], 2);
    assert_eq!(plane.api.get(&path).await.ok()["spec"]["replicas"], 2);
}

#[tokio::test]
async fn a_write_of_the_status_changes_nothing_else() {
    let status = Answer::Patch(|_| {
        json!([
            { "op": "add", "path": "/status/replicas", "value": 7 },
            { "op": "replace", "path": "/spec/replicas", "value": 9 },
        ])
    });
    let fields = json!({ "rules": [rule(&["deployments/status"])] });
    let plane = Plane::mutating(status, fields).await;
    plane.api.post(DEPLOYMENTS, deployment("web")).await.ok();
    let path = format!("{DEPLOYMENTS}/web/status");
    let patch = json!({ "status": { "observedGeneration": 1 } });
    let patched = plane.api.patch(&path, "merge-patch+json", patch).await.ok();
    assert_eq!(patched["status"]["replicas"], 7);
    assert_eq!(patched["spec"]["replicas"], 3);
}

#[tokio::test]
async fn bindings_evictions_and_tokens_are_sent_and_changed() {
    let resources = ["pods/binding", "pods/eviction", "serviceaccounts/token"];
    let fields = json!({ "rules": [rule(&resources)] });
    let plane = Plane::mutating(Answer::Allow, fields).await;
    plane.api.post(PODS, pod()).await.ok();
    let node = Answer::Patch(|request| {
        assert_eq!(request["kind"]["kind"], "Binding");
        assert_eq!(request["resource"]["resource"], "pods");
        json!([{ "op": "replace", "path": "/target/name", "value": "other" }])
    });
    plane.server.answer("a", node);
    let named = |fields| merged(json!({ "metadata": { "name": "a" } }), fields);
    let binding = named(json!({ "target": { "kind": "Node", "name": "n" } }));
    plane
        .api
        .post(&format!("{PODS}/a/binding"), binding)
        .await
        .ok();
    let bound = plane.api.get(&format!("{PODS}/a")).await.ok();
    assert_eq!(bound["spec"]["nodeName"], "other");
    let life = Answer::Patch(|request| {
        assert_eq!(request["kind"]["kind"], "TokenRequest");
        json!([{ "op": "add", "path": "/spec/audiences", "value": ["x"] }])
    });
    plane.server.answer("a", life);
    let path = format!("{ACCOUNTS}/default/token");
    let token = plane.api.post(&path, json!({ "spec": {} })).await.ok();
    assert_eq!(token["spec"]["audiences"], json!(["x"]));
    let no =
        Answer::Deny(|| json!({ "code": 429, "reason": "TooManyRequests", "message": "later" }));
    plane.server.answer("a", no);
    let eviction = named(json!({ "apiVersion": "policy/v1", "kind": "Eviction" }));
    let evicted = plane
        .api
        .post(&format!("{PODS}/a/eviction"), eviction)
        .await;
    let told = evicted.refused(429, "TooManyRequests");
    assert!(told.ends_with("denied the request: later"), "{told}");
}

/// Upstream's webhooks see reviews, which its policies never do.
#[tokio::test]
async fn reviews_are_sent() {
    let fields = json!({ "rules": [rule(&["subjectaccessreviews"])] });
    let plane = Plane::validating(Answer::Allow, fields).await;
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let review = json!({ "spec": {
        "user": "u", "resourceAttributes": { "verb": "get", "resource": "pods" },
    } });
    plane.api.post(path, review.clone()).await.ok();
    let request = plane.server.request();
    assert_eq!(request["operation"], "CREATE");
    assert_eq!(request["object"]["spec"]["user"], "u");
    plane
        .server
        .answer("a", Answer::Deny(|| json!({ "message": "no" })));
    assert!(denial(&plane.api.post(path, review).await).is_some());
}

#[tokio::test]
async fn a_namespace_is_selected_by_its_own_labels() {
    let fields = json!({
        "rules": [rule(&["namespaces"])],
        "namespaceSelector": { "matchLabels": { "team": "red" } },
    });
    let plane = Plane::validating(Answer::Allow, fields).await;
    let namespaces = "/api/v1/namespaces";
    for (team, is_called) in [("red", true), ("blue", false)] {
        let labels = json!({ "team": team });
        let body = json!({ "metadata": { "name": team, "labels": labels } });
        plane.api.post(namespaces, body).await.ok();
        assert_eq!(!plane.server.calls().is_empty(), is_called, "{team}");
    }
}
