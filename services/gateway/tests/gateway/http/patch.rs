//! Patches that are not applied configurations.

use serde_json::json;

use crate::http::api::{Api, CONFIGMAPS, DEPLOYMENTS, deployment};

#[tokio::test]
async fn a_merge_patch_adds_and_removes() {
    let api = Api::start().await;
    api.configmap("a").await;
    let patch = json!({ "data": { "a": null, "c": "d" } });
    let path = format!("{CONFIGMAPS}/a");
    let object = api.patch(&path, "merge-patch+json", patch).await.ok();
    assert_eq!(object["data"], json!({ "c": "d" }));
}

#[tokio::test]
async fn a_json_patch_tests_and_replaces() {
    let api = Api::start().await;
    api.configmap("a").await;
    let path = format!("{CONFIGMAPS}/a");
    let patch = |expected: &str| {
        json!([
            { "op": "test", "path": "/data/a", "value": expected },
            { "op": "replace", "path": "/data/a", "value": "c" },
        ])
    };
    api.patch(&path, "json-patch+json", patch("x"))
        .await
        .refused(422, "Invalid");
    let object = api.patch(&path, "json-patch+json", patch("b")).await.ok();
    assert_eq!(object["data"]["a"], "c");
}

#[tokio::test]
async fn a_strategic_patch_merges_containers_by_name() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, deployment("web")).await.ok();
    let containers = json!([{ "name": "web", "image": "nginx:1.26" }]);
    let patch = json!({ "spec": { "template": { "spec": {
        "$setElementOrder/containers": [{ "name": "web" }],
        "containers": containers,
    } } } });
    let path = format!("{DEPLOYMENTS}/web?fieldValidation=Strict");
    let object = api
        .patch(&path, "strategic-merge-patch+json", patch)
        .await
        .ok();
    let template = &object["spec"]["template"]["spec"];
    assert_eq!(template["containers"][0]["image"], "nginx:1.26");
    assert_eq!(object["metadata"]["generation"], 2);
}

#[tokio::test]
async fn a_patch_with_unknown_fields_is_refused_when_strict() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, deployment("web")).await.ok();
    let patch = json!({ "spec": { "replicaz": 1 } });
    let path = format!("{DEPLOYMENTS}/web");
    let strict = format!("{path}?fieldValidation=Strict");
    let message = api
        .patch(&strict, "merge-patch+json", patch.clone())
        .await
        .refused(422, "Invalid");
    assert!(
        message.contains(r#"strict decoding error: unknown field "spec.replicaz""#),
        "{message}"
    );
    let reply = api.patch(&path, "merge-patch+json", patch).await;
    assert_eq!(reply.code, 200);
    assert!(reply.headers.contains_key("warning"));
}

#[tokio::test]
async fn a_patch_that_changes_nothing_writes_nothing() {
    let api = Api::start().await;
    let before = api.configmap("a").await;
    let path = format!("{CONFIGMAPS}/a");
    let after = api
        .patch(&path, "merge-patch+json", json!({ "data": { "a": "b" } }))
        .await
        .ok();
    assert_eq!(
        before["metadata"]["resourceVersion"],
        after["metadata"]["resourceVersion"]
    );
}

#[tokio::test]
async fn the_scale_can_be_patched() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, deployment("web")).await.ok();
    let path = format!("{DEPLOYMENTS}/web/scale");
    let scale = api
        .patch(
            &path,
            "merge-patch+json",
            json!({ "spec": { "replicas": 5 } }),
        )
        .await
        .ok();
    assert_eq!(
        (&scale["kind"], &scale["apiVersion"]),
        (&json!("Scale"), &json!("autoscaling/v1"))
    );
    assert_eq!(scale["spec"]["replicas"], 5);
    let object = api.get(&format!("{DEPLOYMENTS}/web")).await.ok();
    assert_eq!(object["spec"]["replicas"], 5);
}

#[tokio::test]
async fn other_patches_are_not_supported() {
    let api = Api::start().await;
    api.configmap("a").await;
    let path = format!("{CONFIGMAPS}/a");
    for of in ["apply-patch+cbor", "json"] {
        let message = api
            .patch(&path, of, json!({}))
            .await
            .refused(415, "UnsupportedMediaType");
        assert_eq!(
            message,
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml"
        );
    }
}

#[tokio::test]
async fn a_malformed_patch_is_refused() {
    let api = Api::start().await;
    api.configmap("a").await;
    let request = http::Request::patch(format!("{CONFIGMAPS}/a"));
    let request = request.header("content-type", "application/merge-patch+json");
    api.send(request, "{").await.refused(400, "BadRequest");
}
