//! Create, update and delete.

use http::Request;
use serde_json::{Value, json};

use crate::http::api::{Api, CONFIGMAPS, DEPLOYMENTS, configmap, deployment};

#[tokio::test]
async fn a_created_object_exists_once() {
    let api = Api::start().await;
    let reply = api.post(CONFIGMAPS, configmap("a")).await;
    assert_eq!(reply.code, 201);
    let message = api
        .post(CONFIGMAPS, configmap("a"))
        .await
        .refused(409, "AlreadyExists");
    assert_eq!(message, r#"configmaps "a" already exists"#);
}

#[tokio::test]
async fn a_create_in_a_missing_namespace_is_refused() {
    let api = Api::start().await;
    let path = "/api/v1/namespaces/none/configmaps";
    let message = api
        .post(path, configmap("a"))
        .await
        .refused(404, "NotFound");
    assert_eq!(message, r#"namespaces "none" not found"#);
}

#[tokio::test]
async fn name_and_namespace_must_match_the_url() {
    let api = Api::start().await;
    let mut body = configmap("a");
    body["metadata"]["namespace"] = json!("elsewhere");
    let message = api.post(CONFIGMAPS, body).await.refused(400, "BadRequest");
    assert_eq!(
        message,
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    let mut body = api.configmap("a").await;
    body["metadata"]["name"] = json!("b");
    let message = api
        .put(&format!("{CONFIGMAPS}/a"), body)
        .await
        .refused(400, "BadRequest");
    assert_eq!(
        message,
        "the name of the object (b) does not match the name on the URL (a)"
    );
}

#[tokio::test]
async fn an_update_of_an_outdated_version_is_a_conflict() {
    let api = Api::start().await;
    let path = format!("{CONFIGMAPS}/a");
    let first = api.configmap("a").await;
    let mut second = first.clone();
    second["data"]["a"] = json!("c");
    let second = api.put(&path, second).await.ok();
    assert_ne!(
        first["metadata"]["resourceVersion"],
        second["metadata"]["resourceVersion"]
    );
    let mut stale = first;
    stale["data"]["a"] = json!("d");
    let message = api.put(&path, stale).await.refused(409, "Conflict");
    assert_eq!(
        message,
        r#"Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again"#
    );
}

#[tokio::test]
async fn spec_and_status_are_written_separately() {
    let api = Api::start().await;
    let mut object = api.post(DEPLOYMENTS, deployment("web")).await.ok();
    object["spec"]["replicas"] = json!(9);
    object["status"]["replicas"] = json!(7);
    let path = format!("{DEPLOYMENTS}/web");
    let after = api.put(&format!("{path}/status"), object).await.ok();
    assert_eq!(after["spec"]["replicas"], 3);
    assert_eq!(after["status"]["replicas"], 7);
    let scale = api.get(&format!("{path}/scale")).await.ok();
    assert_eq!(scale["status"]["replicas"], 7);
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let api = Api::start().await;
    let path = format!("{CONFIGMAPS}?dryRun=All");
    assert_eq!(api.post(&path, configmap("a")).await.code, 201);
    api.get(&format!("{CONFIGMAPS}/a"))
        .await
        .refused(404, "NotFound");
    api.configmap("a").await;
    assert_eq!(
        api.delete(&format!("{CONFIGMAPS}/a?dryRun=All")).await.code,
        200
    );
    api.get(&format!("{CONFIGMAPS}/a")).await.ok();
    let path = format!("{CONFIGMAPS}?dryRun=Some");
    api.post(&path, configmap("b"))
        .await
        .refused(422, "Invalid");
}

#[tokio::test]
async fn options_of_writes_are_validated() {
    let api = Api::start().await;
    for right in [
        "dryRun=All",
        "dryRun=All&dryRun=All",
        "dryRun=All&fieldManager=patcher",
        "dryRun=All&fieldManager=%E4%BD%A0%E5%A5%BD",
        "dryRun=All&fieldManager=%F0%9F%8D%94",
    ] {
        let path = format!("{CONFIGMAPS}?{right}");
        api.post(&path, configmap("a")).await.ok();
    }
    let long = format!("fieldManager={}", "f".repeat(129));
    for (wrong, why) in [
        (
            "dryRun=False",
            r#"CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value"#,
        ),
        (
            "dryRun=All&dryRun=False",
            r#"CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value"#,
        ),
        (
            "fieldManager=field%0Amanager",
            r#"fieldManager: Invalid value: "field\nmanager": invalid character U+000A (at position 5)"#,
        ),
        (
            &long,
            "fieldManager: Too long: may not be more than 128 bytes",
        ),
        ("fieldValidation=No", "fieldValidation: Unsupported value"),
    ] {
        let path = format!("{CONFIGMAPS}?{wrong}");
        let message = api
            .post(&path, configmap("a"))
            .await
            .refused(422, "Invalid");
        assert!(message.contains(why), "{message}");
    }
    api.configmap("a").await;
    let path = format!("{CONFIGMAPS}/a");
    for force in ["true", "false"] {
        let path = format!("{path}?fieldManager=kubectl&force={force}");
        let reply = api.patch(&path, "merge-patch+json", json!({})).await;
        let message = reply.refused(422, "Invalid");
        assert!(message.contains("force: Forbidden"), "{message}");
    }
    // Options of reads are not validated.
    let unjudged = format!("{path}?fieldManager=a%0Ab&dryRun=No");
    api.get(&unjudged).await.ok();
    let both = r#"{"propagationPolicy":"Background","orphanDependents":true}"#;
    let reply = api.send(Request::delete(&path), both).await;
    let message = reply.refused(422, "Invalid");
    assert_eq!(
        message,
        r#"DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Background": orphanDependents and deletionPropagation cannot be both set"#
    );
    assert_eq!(reply.json()["details"]["kind"], "DeleteOptions");
}

#[tokio::test]
async fn a_cluster_scoped_object_may_name_a_namespace() {
    let api = Api::start().await;
    let path = "/api/v1/namespaces";
    let mut space = json!({"metadata": {"name": "staging", "namespace": "staging"}});
    let stored = api.post(path, space.clone()).await.ok();
    assert_eq!(stored["metadata"]["namespace"], Value::Null);
    space["metadata"]["labels"] = json!({"a": "b"});
    let stored = api.put(&format!("{path}/staging"), space).await.ok();
    assert_eq!(stored["metadata"]["labels"]["a"], "b");
}

#[tokio::test]
async fn a_deleted_object_is_not_found() {
    let api = Api::start().await;
    let object = api.configmap("a").await;
    let path = format!("{CONFIGMAPS}/a");
    let status = api
        .send(
            Request::delete(&path),
            r#"{"propagationPolicy":"Background"}"#,
        )
        .await
        .ok();
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["status"], "Success");
    assert_eq!(status["details"]["uid"], object["metadata"]["uid"]);
    api.get(&path).await.refused(404, "NotFound");
    api.delete(&path).await.refused(404, "NotFound");
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let api = Api::start().await;
    for name in ["a", "b", "c"] {
        api.configmap(name).await;
    }
    api.delete(&format!("{CONFIGMAPS}?labelSelector=name!=b"))
        .await
        .ok();
    let left = api.get(CONFIGMAPS).await.ok();
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
    assert_eq!(left["items"][0]["metadata"]["name"], "b");
}

#[tokio::test]
async fn a_pod_is_bound_by_its_subresource() {
    let api = Api::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let containers = json!([{ "name": "web", "image": "nginx" }]);
    let pod = json!({ "metadata": { "name": "web" }, "spec": { "containers": containers } });
    api.post(pods, pod).await.ok();
    let binding =
        json!({ "metadata": { "name": "web" }, "target": { "kind": "Node", "name": "n1" } });
    let reply = api.post(&format!("{pods}/web/binding"), binding).await;
    assert_eq!(reply.code, 201);
    assert_eq!(reply.ok()["status"], "Success");
    let pod = api.get(&format!("{pods}/web")).await.ok();
    assert_eq!(pod["spec"]["nodeName"], "n1");
}

#[tokio::test]
async fn an_invalid_object_is_refused_with_causes() {
    let api = Api::start().await;
    let mut body = deployment("web");
    body["spec"]["selector"]["matchLabels"]["app"] = json!("other");
    let reply = api.post(DEPLOYMENTS, body).await;
    let message = reply.refused(422, "Invalid");
    assert!(
        message.starts_with(
            r#"Deployment.apps "web" is invalid: spec.template.metadata.labels: Invalid value:"#
        ),
        "{message}"
    );
    let cause = &reply.json()["details"]["causes"][0];
    assert_eq!(cause["reason"], "FieldValueInvalid");
    assert_eq!(cause["field"], "spec.template.metadata.labels");
}

#[tokio::test]
async fn the_deletion_of_some_kinds_returns_the_object() {
    let api = Api::start().await;
    for (plural, returned) in [("serviceaccounts", true), ("configmaps", false)] {
        let path = format!("/api/v1/namespaces/default/{plural}");
        api.post(&path, json!({ "metadata": { "name": "a" } }))
            .await
            .ok();
        let deleted = api.delete(&format!("{path}/a")).await.ok();
        assert_eq!(deleted["kind"] == "ServiceAccount", returned, "{deleted}");
        assert_eq!(deleted["status"] == "Success", !returned, "{deleted}");
    }
}

#[tokio::test]
async fn a_pending_cascading_deletion_is_accepted() {
    let api = Api::start().await;
    for (name, query, code) in [("a", "?orphanDependents=false", 202), ("b", "", 200)] {
        let metadata = json!({ "name": name, "finalizers": ["example.com/hold"] });
        api.post(CONFIGMAPS, json!({ "metadata": metadata }))
            .await
            .ok();
        let reply = api.delete(&format!("{CONFIGMAPS}/{name}{query}")).await;
        assert_eq!(reply.code, code);
        assert!(reply.ok()["metadata"]["deletionTimestamp"].is_string());
    }
}

/// A Pod can be bound by the collection `bindings`, too, in which clients create a Binding that they have in a file.
#[tokio::test]
async fn a_binding_in_the_collection_binds_the_pod_that_it_names() {
    let api = Api::start().await;
    let core = api.get("/api/v1").await.ok();
    let mut resources = core["resources"].as_array().unwrap().iter();
    let bindings = resources.find(|one| one["name"] == "bindings").unwrap();
    let expected = json!({
        "name": "bindings", "singularName": "binding", "namespaced": true, "kind": "Binding", "verbs": ["create"],
    });
    assert_eq!(*bindings, expected);

    let pods = "/api/v1/namespaces/default/pods";
    let spec = json!({"containers": [{"name": "web", "image": "nginx"}]});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec});
    assert_eq!(api.post(pods, pod).await.code, 201);
    let binding = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "node-1"},
        })
    };
    let path = "/api/v1/namespaces/default/bindings";
    api.post(path, binding("")).await.refused(400, "BadRequest");
    api.post(path, binding("none"))
        .await
        .refused(404, "NotFound");
    let bound = api.post(path, binding("web")).await;
    assert_eq!(bound.code, 201);
    assert_eq!(bound.json()["kind"], "Status");
    let web = api.get(&format!("{pods}/web")).await.ok();
    assert_eq!(web["spec"]["nodeName"], "node-1");
    api.post(path, binding("web"))
        .await
        .refused(409, "Conflict");
    api.get(path).await.refused(405, "MethodNotAllowed");
}
