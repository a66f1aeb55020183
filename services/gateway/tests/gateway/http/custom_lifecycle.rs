//! The life of custom resources: their definitions change, end and return, gateways restart, and the loops of the plane
//! run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use http::StatusCode;
use http::header::RETRY_AFTER;
use serde_json::{Value, json};
use setpoint_codec::envelope;
use setpoint_store::contract::FaultyStore;
use setpoint_store::{Memory, Store, cache};
use tokio::time::sleep;
use tokio_util::sync::DropGuard;

use crate::http::api::{Api, CONFIGMAPS, Reply};
use crate::http::policies;
use crate::http::watch::Events;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tabs.example.com";
const TABS: &str = "/apis/example.com/v1/namespaces/default/tabs";
const TABS_V2: &str = "/apis/example.com/v2/namespaces/default/tabs";
const TAB: &str = "/apis/example.com/v1/namespaces/default/tabs/a";

fn version(name: &str, storage: bool) -> Value {
    json!({
        "name": name,
        "served": true,
        "storage": storage,
        "schema": { "openAPIV3Schema": {
            "type": "object",
            "properties": { "color": { "type": "string" } },
        } },
    })
}

fn definition(versions: Value) -> Value {
    json!({
        "metadata": { "name": "tabs.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": "tabs", "kind": "Tab" },
            "versions": versions,
        },
    })
}

fn tab(name: &str) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Tab", "metadata": { "name": name }, "color": "red",
    })
}

/// Starts a gateway with its background tasks, over a store of its own.
async fn start() -> (Api, DropGuard) {
    let api = Api::start().await;
    let background = api.run_background();
    (api, background)
}

/// Starts a gateway that serves the first version of Tabs.
async fn with_tabs() -> (Api, DropGuard) {
    let (api, background) = start().await;
    define(&api, definition(json!([version("v1", true)]))).await;
    (api, background)
}

async fn define(api: &Api, definition: Value) {
    api.post(DEFINITIONS, definition).await.ok();
    api.eventually(TABS, is_ok).await;
}

fn is_ok(reply: &Reply) -> bool {
    reply.code == StatusCode::OK
}

fn is_missing(reply: &Reply) -> bool {
    reply.code == StatusCode::NOT_FOUND
}

/// Replaces the versions of the definition.
async fn set_versions(api: &Api, versions: Value) -> Reply {
    let patch = json!({ "spec": { "versions": versions } });
    api.patch(DEFINITION, "merge-patch+json", patch).await
}

#[tokio::test]
async fn an_object_with_a_finalizer_holds_its_definition() {
    let (api, _background) = with_tabs().await;
    let mut held = tab("a");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    api.post(TABS, held).await.ok();
    api.delete(DEFINITION).await.ok();
    api.eventually(TAB, |reply| {
        is_ok(reply) && reply.json()["metadata"].get("deletionTimestamp").is_some()
    })
    .await;
    let refused = api.post(TABS, tab("b")).await;
    let message = refused.refused(405, "MethodNotAllowed");
    assert!(
        message.ends_with("create not allowed while custom resource definition is terminating"),
        "{message}"
    );
    api.get(DEFINITION).await.ok();
    let patch = json!({ "metadata": { "finalizers": null } });
    api.patch(TAB, "merge-patch+json", patch).await.ok();
    api.eventually(DEFINITION, is_missing).await;
    api.eventually(TABS, is_missing).await;
}

#[tokio::test]
async fn a_kind_that_is_defined_again_has_the_new_schema_and_no_old_objects() {
    let (api, _background) = with_tabs().await;
    api.post(TABS, tab("a")).await.ok();
    let list = api.get(TABS).await.ok();
    let from = list["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = format!("{TABS}?watch=true&resourceVersion={from}");
    let mut events = Events::of(&api, &watch, "application/json").await;
    api.delete(DEFINITION).await.ok();
    let deleted = events.next().await.unwrap();
    assert_eq!(deleted["type"], "DELETED");
    // The watch ends, possibly after an error, as its kind is gone.
    while let Some(event) = events.next().await {
        assert_eq!(event["type"], "ERROR", "{event}");
    }
    api.eventually(DEFINITION, is_missing).await;
    let mut number = version("v1", true);
    number["schema"]["openAPIV3Schema"]["properties"]["color"] = json!({ "type": "integer" });
    define(&api, definition(json!([number]))).await;
    let empty = api.get(TABS).await.ok();
    assert_eq!(empty["items"], json!([]));
    api.post(TABS, tab("a")).await.refused(422, "Invalid");
    let mut fits = tab("a");
    fits["color"] = 7.into();
    api.post(TABS, fits).await.ok();
}

#[tokio::test]
async fn an_object_moves_to_the_version_of_the_store_when_it_is_written() {
    let store = Arc::new(Memory::default());
    let api = Api::sharing(store.clone()).await;
    let _background = api.run_background();
    api.eventually("/api/v1/namespaces/default", is_ok).await;
    define(&api, definition(json!([version("v1", true)]))).await;
    let created = api.post(TABS, tab("a")).await.ok();
    set_versions(&api, json!([version("v1", false), version("v2", true)]))
        .await
        .ok();
    api.eventually(TABS_V2, is_ok).await;
    let definition = api.get(DEFINITION).await.ok();
    assert_eq!(definition["status"]["storedVersions"], json!(["v1", "v2"]));
    let stored = async || {
        let entry = store.get("/registry/example.com/tabs/default/a").await;
        let read = envelope::read(&entry.unwrap().unwrap().value);
        read.unwrap().api_version
    };
    assert_eq!(stored().await, "example.com/v1");
    let second = api.get(&format!("{TABS_V2}/a")).await.ok();
    assert_eq!(second["apiVersion"], "example.com/v2");
    assert_eq!(second["metadata"]["uid"], created["metadata"]["uid"]);
    // A write without a change is how storage migrators work.
    api.put(TAB, created).await.ok();
    assert_eq!(stored().await, "example.com/v2");
    let refused = set_versions(&api, json!([version("v2", true)])).await;
    let message = refused.refused(422, "Invalid");
    assert!(
        message.contains(
            r#"status.storedVersions[0]: Invalid value: "v1": missing from spec.versions"#
        ),
        "{message}"
    );
    let status = json!({ "status": { "storedVersions": ["v2"] } });
    let path = format!("{DEFINITION}/status");
    api.patch(&path, "merge-patch+json", status).await.ok();
    set_versions(&api, json!([version("v2", true)])).await.ok();
    api.eventually(TABS, is_missing).await;
    let kept = api.get(&format!("{TABS_V2}/a")).await.ok();
    assert_eq!(kept["color"], "red");
}

#[tokio::test]
async fn a_version_that_is_not_served_is_not_found() {
    let (api, _background) = with_tabs().await;
    api.post(TABS, tab("a")).await.ok();
    let mut hidden = version("v1", true);
    hidden["served"] = false.into();
    set_versions(&api, json!([hidden, version("v2", false)]))
        .await
        .ok();
    api.eventually(TABS, is_missing).await;
    let found = api.get(&format!("{TABS_V2}/a")).await.ok();
    assert_eq!(found["color"], "red");
    api.get("/apis/example.com/v1")
        .await
        .refused(404, "NotFound");
}

#[tokio::test]
async fn a_new_default_is_set_in_reads_of_old_objects() {
    let (api, _background) = with_tabs().await;
    api.post(TABS, tab("a")).await.ok();
    let list = api.get(TABS).await.ok();
    let from = list["metadata"]["resourceVersion"].as_str().unwrap();
    let mut new = version("v1", true);
    new["schema"]["openAPIV3Schema"]["properties"]["size"] =
        json!({ "type": "integer", "default": 7 });
    set_versions(&api, json!([new])).await.ok();
    let defaulted = |reply: &Reply| reply.json()["size"] == 7;
    api.eventually(TAB, defaulted).await;
    assert_eq!(api.get(TABS).await.ok()["items"][0]["size"], 7);
    let patch = json!({ "metadata": { "labels": { "a": "b" } } });
    api.patch(TAB, "merge-patch+json", patch).await.ok();
    let watch = format!("{TABS}?watch=true&resourceVersion={from}");
    let mut events = Events::of(&api, &watch, "application/json").await;
    assert_eq!(events.next().await.unwrap()["object"]["size"], 7);
}

#[tokio::test]
async fn a_new_rule_warns_of_parts_that_do_not_change() {
    const WARNING: &str = r#"color: Invalid value: "red": not blue"#;
    let (api, _background) = with_tabs().await;
    api.post(TABS, tab("a")).await.ok();
    let mut new = version("v1", true);
    new["schema"]["openAPIV3Schema"]["properties"]["color"]["x-kubernetes-validations"] =
        json!([{ "rule": "self == 'blue'", "message": "not blue" }]);
    set_versions(&api, json!([new])).await.ok();
    let patch = json!({ "metadata": { "labels": { "a": "b" } } });
    let path = format!("{TAB}?dryRun=All");
    let end = Instant::now() + Duration::from_secs(10);
    let mut patched = api.patch(&path, "merge-patch+json", patch.clone()).await;
    while patched.warnings().is_empty() && Instant::now() < end {
        sleep(Duration::from_millis(20)).await;
        patched = api.patch(&path, "merge-patch+json", patch.clone()).await;
    }
    patched.ok();
    assert_eq!(patched.warnings(), [WARNING]);
    let changed = api.patch(TAB, "merge-patch+json", json!({ "color": "green" }));
    let message = changed.await.refused(422, "Invalid");
    assert!(
        message.contains(r#"color: Invalid value: "green": not blue"#),
        "{message}"
    );
}

#[tokio::test]
async fn other_and_restarted_gateways_serve_the_kind() {
    let store = Arc::new(Memory::default());
    let first = Api::sharing(store.clone()).await;
    let second = Api::sharing(store.clone()).await;
    let _background = first.run_background();
    first.eventually("/api/v1/namespaces/default", is_ok).await;
    define(&first, definition(json!([version("v1", true)]))).await;
    second.eventually(TABS, is_ok).await;
    let created = second.post(TABS, tab("a")).await.ok();
    assert_eq!(first.get(TAB).await.ok(), created);
    drop(second);
    let restarted = Api::sharing(store).await;
    assert_eq!(restarted.get(TAB).await.ok(), created);
    first.delete(DEFINITION).await.ok();
    restarted.eventually(TABS, is_missing).await;
}

/// Checks DG11: a custom object that has outlived its definition is there at once when the definition is back, and no
/// watch of another kind ends.
#[tokio::test]
async fn a_kind_that_returns_has_the_objects_that_outlived_its_definition() {
    let (api, _background) = with_tabs().await;
    let mut held = tab("a");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    let created = api.post(TABS, held).await.ok();
    api.delete(DEFINITION).await.ok();
    let off = json!({ "metadata": { "finalizers": null } });
    api.patch(DEFINITION, "merge-patch+json", off.clone())
        .await
        .ok();
    api.eventually(DEFINITION, is_missing).await;
    api.eventually(TABS, is_missing).await;
    let list = api.get(CONFIGMAPS).await.ok();
    let from = list["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = format!("{CONFIGMAPS}?watch=true&resourceVersion={from}");
    let mut others = Events::of(&api, &watch, "application/json").await;
    define(&api, definition(json!([version("v1", true)]))).await;
    let list = api.get(TABS).await.ok();
    let found = &list["items"][0]["metadata"];
    assert_eq!(found["uid"], created["metadata"]["uid"]);
    api.get(TAB).await.ok();
    let from = list["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = format!("{TABS}?watch=true&resourceVersion={from}");
    let mut events = Events::of(&api, &watch, "application/json").await;
    api.configmap("a").await;
    let event = others.next().await.unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("a"))
    );
    api.patch(TAB, "merge-patch+json", off).await.ok();
    assert_eq!(events.next().await.unwrap()["type"], "DELETED");
}

/// Checks DG11: no object outlives its definition because a gateway does not know yet that it is deleted.
#[tokio::test]
async fn a_gateway_that_lags_behind_creates_no_object_of_a_deleted_definition() {
    let store = Arc::new(Memory::default());
    let first = Api::sharing(store.clone()).await;
    let _background = first.run_background();
    first.eventually("/api/v1/namespaces/default", is_ok).await;
    define(&first, definition(json!([version("v1", true)]))).await;
    let faulty = FaultyStore::new(store.clone());
    let lagging = Api::sharing(faulty.clone()).await;
    lagging.eventually(TABS, is_ok).await;
    faulty.hold();
    first.delete(DEFINITION).await.ok();
    first.eventually(DEFINITION, is_missing).await;
    let reply = lagging.post(TABS, tab("a")).await;
    assert!(!reply.code.is_success(), "{:?}", reply.json());
    let key = "/registry/example.com/tabs/default/a";
    assert_eq!(store.get(key).await, Ok(None));
}

/// Checks DG3.
#[tokio::test]
async fn a_definition_with_the_names_of_a_built_in_kind_serves_and_removes_nothing() {
    let store = Arc::new(Memory::default());
    let api = Api::sharing(store.clone()).await;
    let background = api.run_background();
    api.eventually("/api/v1/namespaces/default", is_ok).await;
    let name = "customresourcedefinitions.apiextensions.k8s.io";
    let mut evil = definition(json!([version("v2", true)]));
    evil["metadata"] = json!({
        "name": name,
        "annotations": { "api-approved.kubernetes.io": "unapproved, x" },
    });
    evil["spec"]["group"] = "apiextensions.k8s.io".into();
    evil["spec"]["names"] =
        json!({ "plural": "customresourcedefinitions", "kind": "CustomResourceDefinition" });
    evil["spec"]["scope"] = "Cluster".into();
    api.post(DEFINITIONS, evil).await.ok();
    let path = format!("{DEFINITIONS}/{name}");
    let refused = |reply: &Reply| {
        let conditions = reply.json()["status"]["conditions"].clone();
        let conditions = conditions.as_array().cloned().unwrap_or_default();
        conditions
            .iter()
            .any(|one| one["reason"] == "KindConflict" || one["reason"] == "PluralConflict")
    };
    api.eventually(&path, refused).await;
    api.get("/apis/apiextensions.k8s.io/v2")
        .await
        .refused(404, "NotFound");
    api.delete(&path).await.ok();
    api.eventually(&path, is_missing).await;
    define(&api, definition(json!([version("v1", true)]))).await;
    drop(background);
    let restarted = Api::sharing(store).await;
    for api in [api, restarted] {
        let list = api.get(DEFINITIONS).await.ok();
        assert_eq!(list["items"].as_array().unwrap().len(), 1);
    }
}

/// Checks DG4: as upstream, the objects of a definition are deleted below admission.
#[tokio::test]
async fn a_policy_does_not_hold_the_objects_of_a_deleted_definition() {
    let (api, _background) = with_tabs().await;
    api.post(TABS, tab("a")).await.ok();
    let rule = policies::merged(
        policies::rule(&["tabs"]),
        json!({ "operations": ["DELETE"] }),
    );
    let constraints = json!({ "matchConstraints": { "resourceRules": [rule] } });
    policies::bind(&api, policies::spec(constraints), json!({})).await;
    let refused = api.delete(TAB).await;
    assert_eq!(refused.code, StatusCode::UNPROCESSABLE_ENTITY);
    api.delete(DEFINITION).await.ok();
    api.eventually(DEFINITION, is_missing).await;
}

/// Paths that are not known before the definitions are.
const UNKNOWN_AT_FIRST: [&str; 7] = [
    "/",
    "/apis",
    "/apis/example.com",
    "/apis/example.com/v1",
    "/openapi/v3/apis/example.com/v1",
    TABS,
    TAB,
];

#[tokio::test]
async fn a_gateway_that_has_not_read_the_definitions_denies_no_kind() {
    let store = Arc::new(Memory::default());
    let first = Api::sharing(store.clone()).await;
    let _background = first.run_background();
    first.eventually("/api/v1/namespaces/default", is_ok).await;
    define(&first, definition(json!([version("v1", true)]))).await;
    first.post(TABS, tab("a")).await.ok();

    let faulty = FaultyStore::new(store);
    faulty.cut();
    let settings = cache::Settings {
        read_timeout: Duration::from_millis(1),
        ..Default::default()
    };
    let impatient = Api::loading(faulty.clone(), settings);
    for path in UNKNOWN_AT_FIRST {
        let reply = impatient.get(path).await;
        let message = reply.refused(503, "ServiceUnavailable");
        assert!(message.ends_with("please retry"), "{path}: {message}");
        assert_eq!(reply.headers[RETRY_AFTER], "1");
    }
    impatient.get("/api/v1").await.ok();

    let restarted = Api::loading(faulty.clone(), cache::Settings::default());
    let waiting = UNKNOWN_AT_FIRST.map(|path| restarted.get(path));
    let released = async { faulty.release() };
    let (replies, ()) = tokio::join!(join_all(waiting), released);
    for (reply, path) in replies.into_iter().zip(UNKNOWN_AT_FIRST) {
        assert_eq!(reply.code, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn every_version_that_is_served_has_an_apiservice() {
    let (api, _background) = start().await;
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let one = |name: &str| format!("{services}/{name}");
    let core = api.eventually(&one("v1."), is_ok).await.ok();
    assert_eq!(core["spec"]["groupPriorityMinimum"], 18_000);
    let condition = &core["status"]["conditions"][0];
    assert_eq!(condition["type"], "Available");
    assert_eq!(condition["reason"], "Local");
    api.eventually(&one("v2.autoscaling"), is_ok).await;
    define(&api, definition(json!([version("v1", true)]))).await;
    api.eventually(&one("v1.example.com"), is_ok).await;
    api.delete(&one("v1.apps")).await.ok();
    api.eventually(&one("v1.apps"), is_ok).await;
    let other = json!({
        "metadata": { "name": "v1.other.example.com" },
        "spec": {
            "group": "other.example.com", "version": "v1",
            "groupPriorityMinimum": 1, "versionPriority": 1,
            "service": { "namespace": "default", "name": "other" },
        },
    });
    api.post(services, other).await.ok();
    api.delete(DEFINITION).await.ok();
    api.eventually(&one("v1.example.com"), is_missing).await;
    api.get(&one("v1.other.example.com")).await.ok();
}
