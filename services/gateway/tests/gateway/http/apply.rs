//! Server-side apply and the managed fields of other writes.

use http::Request;
use http::header::{CONTENT_TYPE, USER_AGENT};
use serde_json::{Value, json};

use crate::http::api::{Api, CONFIGMAPS, DEPLOYMENTS, Reply, configmap, deployment};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Api {
    async fn apply(&self, path: &str, manager: &str, body: Value) -> Reply {
        let path = format!("{path}?fieldManager={manager}");
        self.patch(&path, "apply-patch+yaml", body).await
    }

    async fn force(&self, path: &str, manager: &str, body: Value) -> Reply {
        let path = format!("{path}?force=true&fieldManager={manager}");
        self.patch(&path, "apply-patch+yaml", body).await
    }

    async fn merge(&self, path: &str, body: Value) -> Value {
        self.patch(path, "merge-patch+json", body).await.ok()
    }
}

fn map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

fn web(spec: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
}

/// Returns manager, operation, subresource and fields of each entry, sorted by manager: the order depends on the time.
fn managers(object: &Value) -> Vec<(String, String, String, Value)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = object["metadata"]["managedFields"].as_array();
    let entries = entries.into_iter().flatten().map(|entry| {
        assert_eq!(entry["fieldsType"], "FieldsV1");
        assert!(entry["time"].is_string(), "{entry}");
        (
            text(&entry["manager"]),
            text(&entry["operation"]),
            text(&entry["subresource"]),
            entry["fieldsV1"].clone(),
        )
    });
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by(|one, two| one.0.cmp(&two.0));
    entries
}

fn names(object: &Value) -> Vec<String> {
    managers(object).into_iter().map(|one| one.0).collect()
}

fn path(name: &str) -> String {
    format!("{CONFIGMAPS}/{name}")
}

/// Checks A2.
#[tokio::test]
async fn an_apply_creates_and_the_same_again_writes_nothing() {
    let api = Api::start().await;
    let created = api.apply(&path("a"), "one", map(json!({"x": "1"}))).await;
    assert_eq!(created.code, 201);
    let created = created.json();
    let fields = json!({"f:data": {"f:x": {}}});
    let entry = ("one".into(), "Apply".into(), String::new(), fields);
    assert_eq!(managers(&created), [entry]);
    let again = api.apply(&path("a"), "one", map(json!({"x": "1"}))).await;
    assert_eq!(again.code, 200);
    assert_eq!(again.json(), created);
}

#[tokio::test]
async fn a_configuration_may_be_yaml_but_not_cbor() {
    let api = Api::start().await;
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: \"1\"\n";
    let url = format!("{}?fieldManager=one", path("a"));
    let request = |of: &str| Request::patch(&url).header(CONTENT_TYPE, of);
    let applied = api
        .send(request("application/apply-patch+yaml"), yaml)
        .await;
    assert_eq!(applied.ok()["data"], json!({"x": "1"}));
    let message = api
        .send(request("application/apply-patch+yaml"), "a: [")
        .await
        .refused(400, "BadRequest");
    assert!(message.starts_with("error decoding YAML: "), "{message}");
    api.send(request("application/apply-patch+cbor"), "\u{7f}")
        .await
        .refused(415, "UnsupportedMediaType");
    let request = Request::post(CONFIGMAPS).header(CONTENT_TYPE, "application/cbor");
    let message = api
        .send(request, "x")
        .await
        .refused(415, "UnsupportedMediaType");
    assert!(
        message
            .ends_with("application/json, application/yaml, application/vnd.kubernetes.protobuf"),
        "{message}"
    );
}

/// Checks A1.
#[tokio::test]
async fn a_conflict_names_the_manager_and_the_field() {
    let api = Api::start().await;
    let url = format!("{DEPLOYMENTS}/web");
    api.apply(&url, "one", deployment("web")).await.ok();
    let refused = api.apply(&url, "two", web(json!({"replicas": 5}))).await;
    let message = refused.refused(409, "Conflict");
    assert_eq!(
        message,
        r#"Apply failed with 1 conflict: conflict with "one": .spec.replicas"#
    );
    assert_eq!(
        refused.json()["details"]["causes"],
        json!([{"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".spec.replicas"}])
    );
    let taken = api
        .force(&url, "two", web(json!({"replicas": 5})))
        .await
        .ok();
    assert_eq!(taken["spec"]["replicas"], 5);
    assert_eq!(taken["metadata"]["generation"], 2);
    let owned: Vec<_> = managers(&taken)
        .into_iter()
        .map(|one| one.3["f:spec"]["f:replicas"].clone())
        .collect();
    assert_eq!(owned, [Value::Null, json!({})]);
}

/// Checks A1.
#[tokio::test]
async fn what_the_only_owner_leaves_out_is_removed() {
    let api = Api::start().await;
    api.apply(&path("a"), "one", map(json!({"x": "1", "y": "1"})))
        .await
        .ok();
    api.apply(&path("a"), "two", map(json!({"y": "1", "z": "1"})))
        .await
        .ok();
    let left = api.apply(&path("a"), "one", map(json!({}))).await.ok();
    assert_eq!(left["data"], json!({"y": "1", "z": "1"}));
    // The manager still owns the map itself, which it applies empty.
    assert_eq!(names(&left), ["one", "two"]);
}

#[tokio::test]
async fn a_default_returns_when_its_field_is_left_out() {
    let api = Api::start().await;
    let url = format!("{DEPLOYMENTS}/web");
    api.apply(&url, "one", deployment("web")).await.ok();
    let mut without = deployment("web");
    without["spec"].as_object_mut().unwrap().remove("replicas");
    let defaulted = api.apply(&url, "one", without.clone()).await.ok();
    assert_eq!(defaulted["spec"]["replicas"], 1);
    assert_eq!(api.apply(&url, "one", without).await.ok(), defaulted);
}

#[tokio::test]
async fn an_apply_needs_a_manager_and_other_patches_may_not_force() {
    let api = Api::start().await;
    let message = api
        .patch(&path("a"), "apply-patch+yaml", map(json!({})))
        .await
        .refused(422, "Invalid");
    assert_eq!(
        message,
        r#"PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch"#
    );
    let url = format!("{}?force=true", path("a"));
    api.patch(&url, "merge-patch+json", json!({}))
        .await
        .refused(422, "Invalid");
}

#[tokio::test]
async fn a_configuration_must_fit_its_target() {
    let api = Api::start().await;
    let url = path("a");
    let with = |at: &str, value: Value| {
        let mut body = map(json!({"x": "1"}));
        body["metadata"][at] = value;
        body
    };
    let other_kind = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    for (body, message) in [
        (
            json!({"metadata": {"name": "a"}}),
            "invalid object type: /, Kind=",
        ),
        (other_kind, "invalid object type: /v1, Kind=Secret"),
        (
            with("managedFields", json!([])),
            "metadata.managedFields must be nil",
        ),
        (
            with("name", json!("b")),
            "the name of the object (b) does not match the name on the URL (a)",
        ),
        (
            with("name", json!(null)),
            "the name of the object (a based on URL) was undeterminable: name must be provided",
        ),
        (
            with("namespace", json!("b")),
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            with("namex", json!("b")),
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .metadata.namex: field not declared in schema",
        ),
    ] {
        let refused = api
            .apply(&url, "one", body)
            .await
            .refused(400, "BadRequest");
        assert_eq!(refused, message);
    }
    let message = api
        .apply(&url, "one", with("uid", json!("1")))
        .await
        .refused(409, "Conflict");
    assert!(
        message.ends_with(
            "uid mismatch: the provided object specified uid 1, and no existing object was found"
        ),
        "{message}"
    );
    api.apply(&format!("{url}/status"), "one", with("name", json!("a")))
        .await
        .refused(404, "NotFound");
}

#[tokio::test]
async fn a_configuration_of_another_version_must_fit_that_version() {
    let api = Api::start().await;
    let path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/a";
    let with = |spec: Value| {
        json!({
            "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
            "spec": spec,
        })
    };
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let unknown = json!({"scaleTargetRef": target, "maxReplicas": 2, "minReplicaz": 1});
    let refused = api.apply(path, "one", with(unknown)).await;
    let message = refused.refused(400, "BadRequest");
    assert!(
        message.ends_with(".spec.minReplicaz: field not declared in schema"),
        "{message}"
    );
    let known =
        json!({"scaleTargetRef": target, "maxReplicas": 2, "targetCPUUtilizationPercentage": 60});
    let applied = api.apply(path, "one", with(known)).await.ok();
    assert_eq!(applied["spec"]["targetCPUUtilizationPercentage"], 60);
}

#[tokio::test]
async fn a_resource_version_is_a_precondition() {
    let api = Api::start().await;
    let created = api
        .apply(&path("a"), "one", map(json!({"x": "1"})))
        .await
        .ok();
    let mut body = map(json!({"x": "2"}));
    body["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    api.apply(&path("a"), "one", body.clone()).await.ok();
    body["data"]["x"] = "3".into();
    let message = api
        .apply(&path("a"), "one", body)
        .await
        .refused(409, "Conflict");
    assert!(
        message.contains("the object has been modified"),
        "{message}"
    );
}

#[tokio::test]
async fn a_dry_run_shows_the_result_and_stores_nothing() {
    let api = Api::start().await;
    let dry = format!("{}?dryRun=All&fieldManager=one", path("a"));
    let body = map(json!({"x": "1"}));
    let shown = api.patch(&dry, "apply-patch+yaml", body.clone()).await;
    assert_eq!(shown.code, 201);
    assert_eq!(names(&shown.json()), ["one"]);
    api.get(&path("a")).await.refused(404, "NotFound");
    api.apply(&path("a"), "one", body).await.ok();
    let shown = api
        .patch(&dry, "apply-patch+yaml", map(json!({"x": "2"})))
        .await
        .ok();
    assert_eq!(shown["data"]["x"], "2");
    assert_eq!(api.get(&path("a")).await.ok()["data"]["x"], "1");
}

#[tokio::test]
async fn creates_updates_and_patches_are_tracked() {
    let api = Api::start().await;
    let request = Request::post(CONFIGMAPS).header(CONTENT_TYPE, "application/json");
    let request = request.header(USER_AGENT, "kubectl/v1.36.2 (linux/amd64)");
    let created = api.send(request, configmap("a").to_string()).await.ok();
    let fields = json!({
        "f:data": {".": {}, "f:a": {}},
        "f:metadata": {"f:labels": {".": {}, "f:name": {}}},
    });
    let entry = ("kubectl".into(), "Update".into(), String::new(), fields);
    assert_eq!(managers(&created), [entry]);
    let mut object = created.clone();
    object["data"]["b"] = "1".into();
    let updated = api
        .put(&format!("{}?fieldManager=editor", path("a")), object)
        .await
        .ok();
    assert_eq!(names(&updated), ["editor", "kubectl"]);
    let patched = api
        .merge(
            &format!("{}?fieldManager=third", path("a")),
            json!({"data": {"a": null, "b": "2"}}),
        )
        .await;
    assert_eq!(names(&patched), ["kubectl", "third"]);
    assert_eq!(managers(&patched)[1].3, json!({"f:data": {"f:b": {}}}));
    // Nothing changes, so nothing is written.
    let mut same = patched.clone();
    same["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("managedFields");
    let again = api
        .put(&format!("{}?fieldManager=fourth", path("a")), same)
        .await
        .ok();
    assert_eq!(again, patched);
}

#[tokio::test]
async fn writes_of_the_status_and_the_scale_have_entries_of_their_own() {
    let api = Api::start().await;
    let url = format!("{DEPLOYMENTS}/web");
    let mut created = deployment("web");
    created["status"] = json!({"replicas": 7});
    let url_of = |part: &str, manager: &str| format!("{url}{part}?fieldManager={manager}");
    api.post(&format!("{DEPLOYMENTS}?fieldManager=user"), created)
        .await
        .ok();
    let status = json!({"status": {"replicas": 1}, "spec": {"paused": true}});
    api.merge(&url_of("/status", "controller"), status).await;
    api.merge(
        &url_of("/scale", "scaler"),
        json!({"spec": {"replicas": 5}}),
    )
    .await;
    let object = api.get(&url).await.ok();
    let entries = managers(&object);
    let find = |name: &str| entries.iter().find(|one| one.0 == name).unwrap();
    assert_eq!(find("user").3.get("f:status"), None);
    assert_eq!(find("user").3["f:spec"].get("f:replicas"), None);
    let (_, _, part, fields) = find("controller");
    assert_eq!(
        (part.as_str(), fields),
        ("status", &json!({"f:status": {"f:replicas": {}}}))
    );
    let (_, _, part, fields) = find("scaler");
    assert_eq!(
        (part.as_str(), fields),
        ("scale", &json!({"f:spec": {"f:replicas": {}}}))
    );
    let refused = api
        .apply(&url, "user", web(json!({"replicas": 3})))
        .await
        .refused(409, "Conflict");
    assert_eq!(
        refused,
        r#"Apply failed with 1 conflict: conflict with "scaler" with subresource "scale" using apps/v1: .spec.replicas"#
    );
}

/// Checks A1.
#[tokio::test]
async fn the_status_and_the_scale_can_be_applied() {
    let api = Api::start().await;
    let url = format!("{DEPLOYMENTS}/web");
    api.apply(&url, "user", deployment("web")).await.ok();
    let mut body = web(json!({"replicas": 9}));
    body["status"] = json!({"replicas": 2});
    let applied = api
        .force(&format!("{url}/status"), "controller", body)
        .await
        .ok();
    assert_eq!(
        (&applied["spec"]["replicas"], &applied["status"]["replicas"]),
        (&json!(3), &json!(2))
    );
    let scale = |replicas: i32| {
        json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": replicas},
        })
    };
    let message = api
        .apply(&format!("{url}/scale"), "scaler", scale(4))
        .await
        .refused(409, "Conflict");
    assert!(
        message.ends_with(r#"conflict with "user": .spec.replicas"#),
        "{message}"
    );
    let applied = api
        .force(&format!("{url}/scale"), "scaler", scale(4))
        .await
        .ok();
    assert_eq!(
        (&applied["kind"], &applied["spec"]["replicas"]),
        (&json!("Scale"), &json!(4))
    );
    let entries = managers(&api.get(&url).await.ok());
    let shown: Vec<_> = entries
        .iter()
        .map(|one| (one.0.as_str(), one.1.as_str(), one.2.as_str()))
        .collect();
    assert_eq!(shown.len(), 3);
    assert!(
        shown.contains(&("scaler", "Apply", "scale"))
            && shown.contains(&("controller", "Apply", "status"))
    );
}

#[tokio::test]
async fn managed_fields_can_be_cleared_and_begin_again_with_an_apply() {
    let api = Api::start().await;
    let set = |value: Value| json!({"metadata": {"managedFields": value}});
    let replace = |value: Value| json!([{"op": "replace", "path": "/metadata/managedFields", "value": value}]);
    for (of, patch) in [
        ("merge-patch+json", set(json!([{}]))),
        ("merge-patch+json", set(json!([]))),
        ("strategic-merge-patch+json", set(json!([{}]))),
        ("json-patch+json", replace(json!([{}]))),
        ("json-patch+json", replace(json!([]))),
    ] {
        api.configmap("a").await;
        let cleared = api.patch(&path("a"), of, patch).await.ok();
        assert_eq!(managers(&cleared), []);
        let patched = api.merge(&path("a"), json!({"data": {"b": "1"}})).await;
        assert_eq!(managers(&patched), []);
        api.delete(&path("a")).await.ok();
    }
    for cleared in [json!([]), json!([{}])] {
        let mut object = api.configmap("a").await;
        object["metadata"]["managedFields"] = cleared;
        assert_eq!(managers(&api.put(&path("a"), object).await.ok()), []);
        let applied = api
            .apply(&path("a"), "one", map(json!({"x": "1"})))
            .await
            .ok();
        assert_eq!(names(&applied), ["before-first-apply", "one"]);
        api.delete(&path("a")).await.ok();
    }
}

#[tokio::test]
async fn managers_can_be_renamed_and_malformed_ones_are_ignored() {
    let api = Api::start().await;
    let created = api.configmap("a").await;
    let mut renamed = created["metadata"]["managedFields"].clone();
    renamed[0]["manager"] = "renamed".into();
    renamed[0]["operation"] = "Apply".into();
    let patch = json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": renamed},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": created["metadata"]["resourceVersion"]},
    ]);
    let object = api.patch(&path("a"), "json-patch+json", patch).await.ok();
    assert_eq!(names(&object), ["renamed"]);
    let malformed = json!([{"manager": "x", "operation": "Steal", "apiVersion": "v1", "fieldsType": "FieldsV1"}]);
    let body = json!({"metadata": {"managedFields": malformed}});
    assert_eq!(api.merge(&path("a"), body).await, object);
    let mut with_malformed = configmap("b");
    with_malformed["metadata"]["managedFields"] = malformed;
    let created = api
        .post(&format!("{CONFIGMAPS}?fieldManager=user"), with_malformed)
        .await
        .ok();
    assert_eq!(names(&created), ["user"]);
}

#[tokio::test]
async fn kubectl_goes_over_from_client_side_to_server_side_apply() {
    let api = Api::start().await;
    let mut object = map(json!({"x": "1", "y": "1"}));
    let last = object.to_string();
    object["metadata"]["annotations"] = json!({LAST_APPLIED: last});
    let url = format!("{CONFIGMAPS}?fieldManager=kubectl-client-side-apply");
    api.post(&url, object).await.ok();
    let config = map(json!({"x": "2", "y": "1"}));
    api.apply(&path("a"), "other", config.clone())
        .await
        .refused(409, "Conflict");
    let applied = api.apply(&path("a"), "kubectl", config.clone()).await.ok();
    assert_eq!(applied["data"], json!({"x": "2", "y": "1"}));
    let annotation = applied["metadata"]["annotations"][LAST_APPLIED]
        .as_str()
        .unwrap();
    assert_eq!(serde_json::from_str::<Value>(annotation).unwrap(), config);
    assert_eq!(api.apply(&path("a"), "kubectl", config).await.ok(), applied);
}

#[tokio::test]
async fn what_the_gateway_adds_to_a_new_object_has_no_owner() {
    let api = Api::start().await;
    let body = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    });
    let url = "/api/v1/namespaces/default/services";
    let created = api
        .post(&format!("{url}?fieldManager=user"), body.clone())
        .await
        .ok();
    assert!(created["spec"]["clusterIP"].is_string());
    let fields = json!({"f:spec": {
        "f:internalTrafficPolicy": {}, "f:selector": {}, "f:sessionAffinity": {}, "f:type": {},
        "f:ports": {".": {}, r#"k:{"port":80,"protocol":"TCP"}"#: {
            ".": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {},
        }},
    }});
    assert_eq!(managers(&created)[0].3, fields);
    let applied = api
        .apply(&format!("{url}/web"), "one", body.clone())
        .await
        .ok();
    assert_eq!(applied["spec"], created["spec"]);
    assert_eq!(
        api.apply(&format!("{url}/web"), "one", body).await.ok(),
        applied
    );
}

#[tokio::test]
async fn lists_and_history_are_consistent_with_managed_fields() {
    let api = Api::start().await;
    let created = api.configmap("a").await;
    let list = api.get(CONFIGMAPS).await.ok();
    assert_eq!(
        list["items"][0]["metadata"]["managedFields"],
        created["metadata"]["managedFields"]
    );
}

#[tokio::test]
async fn a_key_that_a_configuration_has_twice_is_warned_of_or_refused() {
    let api = Api::start().await;
    let yaml =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: \"1\"\n  x: \"2\"\n";
    let apply = async |validation: &str| {
        let url = format!(
            "{}?fieldManager=one&fieldValidation={validation}",
            path("a")
        );
        let request = Request::patch(url).header(CONTENT_TYPE, "application/apply-patch+yaml");
        api.send(request, yaml).await
    };
    let problem = "error converting YAML to JSON: yaml: unmarshal errors:\n  line 7: key \"x\" already set in map";
    let message = apply("Strict").await.refused(400, "BadRequest");
    assert_eq!(message, format!("error strict decoding YAML: {problem}"));
    let warned = apply("Warn").await;
    assert!(warned.headers.contains_key("warning"));
    assert_eq!(warned.ok()["data"]["x"], "2");
    assert!(!apply("Ignore").await.headers.contains_key("warning"));
}
