//! The operations and the subresources that policies judge.

use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::{bind, denial, rule, spec, with};
use crate::http::api::{Api, CONFIGMAPS, DEPLOYMENTS, configmap, deployment};
use crate::http::custom::CRONTABS;

/// A policy for some resources that denies every request, and says what it is.
fn reporting(resources: &[&str], expression: &str) -> Value {
    spec(json!({
        "matchConstraints": { "resourceRules": [rule(resources)] },
        "validations": [{ "expression": "false", "messageExpression": expression }],
    }))
}

#[tokio::test]
async fn updates_patches_and_deletions_are_judged_with_the_old_object() {
    let api = Api::start().await;
    api.configmap("a").await;
    let expression = "request.operation + ' ' + (object == null ? 'gone' : string(object.data.a)) + ' ' + string(oldObject.data.a) + ' ' + string(oldObject.metadata.resourceVersion != '')";
    bind(&api, reporting(&["configmaps"], expression), json!({})).await;
    let path = format!("{CONFIGMAPS}/a");
    let data = |value| json!({ "data": { "a": value } });
    let changed = super::merged(configmap("a"), data("c"));
    let apply = Request::patch(format!("{path}?fieldManager=test&force=true"))
        .header(CONTENT_TYPE, "application/apply-patch+yaml");
    let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "f" } });
    for (reply, expected) in [
        (api.put(&path, changed).await, "UPDATE c b true"),
        (
            api.patch(&path, "merge-patch+json", data("d")).await,
            "UPDATE d b true",
        ),
        (
            api.patch(&path, "strategic-merge-patch+json", data("e"))
                .await,
            "UPDATE e b true",
        ),
        (api.send(apply, body.to_string()).await, "UPDATE f b true"),
        (api.delete(&path).await, "DELETE gone b true"),
        (api.delete(CONFIGMAPS).await, "DELETE gone b true"),
    ] {
        assert_eq!(denial(&reply).as_deref(), Some(expected));
    }
    assert_eq!(api.get(&path).await.ok()["data"]["a"], "b");
}

const RESIZED: &str =
    r#"{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}}"#;
const DEBUGGED: &str = r#"{"spec":{"ephemeralContainers":[{"name":"d","image":"i"}]}}"#;
/// Subresources, each with a change of it.
type Parts = &'static [(&'static str, &'static str)];

/// Returns objects, each with the path of its collection, and with its subresources.
fn parts() -> Vec<(&'static str, Value, Parts)> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "spec": { "containers": [{ "name": "c", "image": "i", "resources": { "requests": { "cpu": "1" } } }] },
    });
    vec![
        (
            "/api/v1/nodes",
            json!({ "apiVersion": "v1", "kind": "Node" }),
            &[
                ("", r#"{"spec":{"unschedulable":true}}"#),
                ("status", r#"{"status":{"phase":"Running"}}"#),
            ],
        ),
        (
            "/api/v1/namespaces/default/pods",
            pod,
            &[
                ("", r#"{"metadata":{"annotations":{"a":"b"}}}"#),
                ("status", r#"{"status":{"phase":"Running"}}"#),
                ("ephemeralcontainers", DEBUGGED),
                ("resize", RESIZED),
            ],
        ),
        (
            DEPLOYMENTS,
            deployment("x"),
            &[
                ("", r#"{"spec":{"replicas":7}}"#),
                ("status", r#"{"status":{"replicas":7}}"#),
            ],
        ),
        (
            "/api/v1/namespaces",
            json!({ "apiVersion": "v1", "kind": "Namespace" }),
            &[
                ("", r#"{"metadata":{"annotations":{"a":"b"}}}"#),
                (
                    "status",
                    r#"{"status":{"conditions":[{"type":"X","status":"True"}]}}"#,
                ),
            ],
        ),
        (
            CRONTABS,
            json!({ "apiVersion": "stable.example.com/v1", "kind": "CronTab", "spec": {} }),
            &[
                ("", r#"{"spec":{"replicas":7}}"#),
                ("status", r#"{"status":{"replicas":7}}"#),
            ],
        ),
    ]
}

/// Checks V11 (CVE-2021-25735): whatever a request says of the object as it is, the old object is that of the store.
#[tokio::test]
async fn the_old_object_is_that_of_the_store_for_every_patch_and_subresource() {
    let api = Api::with_crontabs().await;
    let mut stored = Vec::new();
    for (collection, mut object, parts) in parts() {
        object["metadata"] = json!({ "name": "x", "labels": { "mark": "stored" } });
        let object = api.post(collection, object).await.ok();
        stored.push((format!("{collection}/x"), object, parts));
    }
    let expression = "request.operation + ' ' + request.subResource + ' ' + oldObject.metadata.labels.mark + ' ' + oldObject.metadata.resourceVersion";
    bind(&api, reporting(&["*/*"], expression), json!({})).await;
    for (path, object, parts) in &stored {
        let version = object["metadata"]["resourceVersion"].as_str().unwrap();
        for (part, change) in *parts {
            let at = format!("{path}/{part}");
            let at = at.trim_end_matches('/');
            let expected = format!("UPDATE {part} stored {version}");
            for (of, body) in bodies(object, &serde_json::from_str(change).unwrap()) {
                let method = match of {
                    "json" => "PUT",
                    _ => "PATCH",
                };
                let at = match of {
                    "apply-patch+yaml" => format!("{at}?fieldManager=test&force=true"),
                    _ => at.to_owned(),
                };
                let request = Request::builder().method(method).uri(&at);
                let request = request.header(CONTENT_TYPE, format!("application/{of}"));
                let reply = api.send(request, body.to_string()).await;
                let is_unsupported = reply.code == 415 && of.starts_with("strategic");
                if !is_unsupported || !path.contains("crontabs") {
                    assert_eq!(denial(&reply), Some(expected.clone()), "{of} {at}");
                }
            }
        }
        assert_eq!(api.get(path).await.ok(), *object);
    }
}

/// Returns the bodies of an update and of each type of patch that change an object, and that call it another one than
/// it is.
fn bodies(object: &Value, change: &Value) -> Vec<(&'static str, Value)> {
    let mut patch = change.clone();
    patch["metadata"]["labels"] = json!({ "mark": "forged" });
    let mut updated = object.clone();
    merge(&mut updated, &patch);
    let mut applied = patch.clone();
    for field in ["apiVersion", "kind"] {
        applied[field] = object[field].clone();
    }
    applied["metadata"]["name"] = "x".into();
    let fields = patch.as_object().unwrap().keys();
    let operations = fields
        .map(|field| json!({ "op": "add", "path": format!("/{field}"), "value": updated[field] }));
    vec![
        ("json", updated.clone()),
        ("merge-patch+json", patch.clone()),
        ("strategic-merge-patch+json", patch.clone()),
        ("json-patch+json", operations.collect()),
        ("apply-patch+yaml", applied),
    ]
}

fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (field, value) in patch {
                merge(into.entry(field).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(patch)) if !into.is_empty() => {
            for (into, patch) in into.iter_mut().zip(patch) {
                merge(into, patch);
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

#[tokio::test]
async fn an_applied_configuration_that_creates_is_a_create() {
    let api = with(reporting(&["configmaps"], "request.operation"), json!({})).await;
    let apply = Request::patch(format!("{CONFIGMAPS}/a?fieldManager=test"))
        .header(CONTENT_TYPE, "application/apply-patch+yaml");
    let metadata = json!({ "name": "a" });
    let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
    let reply = api.send(apply, body.to_string()).await;
    assert_eq!(denial(&reply).as_deref(), Some("CREATE"));
}

#[tokio::test]
async fn subresources_are_judged_as_their_own() {
    let api = Api::start().await;
    let web = api.post(DEPLOYMENTS, deployment("web")).await.ok();
    let expression = "request.subResource + ' ' + request.kind.kind + ' ' + string(object.spec.replicas) + ' ' + string(oldObject.spec.replicas)";
    let policy = reporting(&["deployments/status", "deployments/scale"], expression);
    bind(&api, policy, json!({})).await;
    let path = format!("{DEPLOYMENTS}/web");
    let replicas = json!({ "spec": { "replicas": 5 } });
    let scale = api.get(&format!("{path}/scale")).await.ok();
    let scale = super::merged(scale, replicas.clone());
    let status = super::merged(web, json!({ "status": { "replicas": 1 } }));
    let at = |part: &str| format!("{path}/{part}");
    for (reply, expected) in [
        (api.put(&at("scale"), scale).await, "scale Scale 5 3"),
        (
            api.patch(&at("scale"), "merge-patch+json", replicas.clone())
                .await,
            "scale Scale 5 3",
        ),
        (
            api.put(&at("status"), status).await,
            "status Deployment 3 3",
        ),
        (
            api.patch(
                &at("status"),
                "merge-patch+json",
                json!({ "status": { "replicas": 1 } }),
            )
            .await,
            "status Deployment 3 3",
        ),
    ] {
        assert_eq!(denial(&reply).as_deref(), Some(expected));
    }
    api.patch(&path, "merge-patch+json", replicas).await.ok();
}

#[tokio::test]
async fn bindings_evictions_and_tokens_are_judged() {
    let api = Api::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({
        "metadata": { "name": "a" },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    api.post(pods, pod).await.ok();
    let resources = [
        "pods",
        "pods/binding",
        "pods/eviction",
        "serviceaccounts/token",
    ];
    let expression = "request.operation + ' ' + request.name + ' ' + request.subResource + ' ' + request.kind.kind";
    bind(&api, reporting(&resources, expression), json!({})).await;
    let named = |fields| super::merged(json!({ "metadata": { "name": "a" } }), fields);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    for (path, body, expected) in [
        (
            format!("{pods}/a/binding"),
            named(json!({ "target": { "kind": "Node", "name": "n" } })),
            "CREATE a binding Binding",
        ),
        (
            format!("{pods}/a/eviction"),
            named(json!({ "apiVersion": "policy/v1", "kind": "Eviction" })),
            "CREATE a eviction Eviction",
        ),
        (
            format!("{accounts}/default/token"),
            json!({}),
            "CREATE default token TokenRequest",
        ),
    ] {
        let reply = api.post(&path, body).await;
        assert_eq!(denial(&reply).as_deref(), Some(expected));
    }
}

/// An eviction deletes its Pod as a part of it.
#[tokio::test]
async fn the_parts_of_an_admitted_request_are_not_judged_again() {
    let api = Api::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({
        "metadata": { "name": "a" },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    api.post(pods, pod).await.ok();
    bind(&api, reporting(&["pods"], "request.operation"), json!({})).await;
    let path = format!("{pods}/a");
    assert_eq!(denial(&api.delete(&path).await).as_deref(), Some("DELETE"));
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "a" },
    });
    api.post(&format!("{path}/eviction"), eviction).await.ok();
    assert_eq!(api.get(&path).await.code, 404);
}

#[tokio::test]
async fn a_dry_run_is_judged() {
    let api = with(
        reporting(&["configmaps"], "string(request.dryRun)"),
        json!({}),
    )
    .await;
    let reply = api
        .post(&format!("{CONFIGMAPS}?dryRun=All"), configmap("a"))
        .await;
    assert_eq!(denial(&reply).as_deref(), Some("true"));
}

/// A Namespace is in itself, and its own labels count.
#[tokio::test]
async fn namespaces_are_selected_by_their_own_labels() {
    let api = Api::start().await;
    let constraints = json!({
        "resourceRules": [rule(&["namespaces"])],
        "namespaceSelector": { "matchLabels": { "team": "red" } },
    });
    let expression =
        "request.operation + ' ' + request.namespace + ' ' + string(namespaceObject == null)";
    let policy = super::merged(
        reporting(&["namespaces"], expression),
        json!({ "matchConstraints": constraints }),
    );
    let namespaces = "/api/v1/namespaces";
    let red = |name: &str, team: &str| json!({ "metadata": { "name": name, "labels": { "team": team } } });
    api.post(namespaces, red("old", "red")).await.ok();
    bind(&api, policy, json!({})).await;
    api.post(namespaces, red("blue", "blue")).await.ok();
    let created = api.post(namespaces, red("new", "red")).await;
    assert_eq!(denial(&created).as_deref(), Some("CREATE  true"));
    let deleted = api.delete("/api/v1/namespaces/old").await;
    assert_eq!(denial(&deleted).as_deref(), Some("DELETE old true"));
}
