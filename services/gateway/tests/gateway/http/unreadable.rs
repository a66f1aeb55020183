//! Objects at the limits of what can be stored, and stored values that cannot be decoded.

use std::sync::Arc;

use axum::body::Body;
use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};
use setpoint_gateway::in_process;
use setpoint_store::{Memory, Store as _, Write, cache};

use super::api::{Api, CONFIGMAPS};
use super::watch::Events;

const BOXES: &str = "/apis/limits.example.com/v1/namespaces/default/boxes";
const ANY: &str = "/apis/limits.example.com/v1/namespaces/default/boxes/a";
const FORGED: &str = "/api/v1/namespaces/default/configmaps/forged";
const FORGED_KEY: &str = "/registry/configmaps/default/forged";
const IGNORE: &str = "ignoreStoreReadErrorWithClusterBreakingPotential=true";

/// Starts a gateway with the namespace `default` over a store.
async fn start() -> (Api, Memory) {
    let store = Memory::default();
    let shared = Arc::new(store.clone());
    let registry = in_process::registry(shared, cache::Settings::default()).await;
    (Api::over(registry).await, store)
}

/// Starts a gateway that serves Boxes, which have any fields.
async fn with_boxes() -> Api {
    let (api, _) = start().await;
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "metadata": { "name": "boxes.limits.example.com" },
        "spec": {
            "group": "limits.example.com",
            "scope": "Namespaced",
            "names": { "plural": "boxes", "singular": "box", "kind": "Box" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": open },
            }],
        },
    });
    api.define(definition).await;
    api
}

/// Returns an object of this depth, held by a finalizer.
fn nested(depth: usize) -> Value {
    let mut value = json!({});
    for _ in 2..depth {
        value = json!({ "a": value });
    }
    json!({
        "apiVersion": "limits.example.com/v1", "kind": "Box",
        "metadata": { "name": "a", "finalizers": ["example.com/held"] },
        "a": value,
    })
}

/// Deletes the object `a`, which a finalizer holds, and then the finalizer.
async fn is_deleted(api: &Api) {
    api.delete(ANY).await.ok();
    let ending = api.get(ANY).await.ok();
    assert!(ending["metadata"].get("deletionTimestamp").is_some());
    let off = json!({ "metadata": { "finalizers": null } });
    api.patch(ANY, "merge-patch+json", off).await.ok();
    api.get(ANY).await.refused(404, "NotFound");
}

/// Checks DG2: what is accepted can be read, changed and deleted.
#[tokio::test]
async fn an_object_at_the_depth_limit_is_read_changed_and_deleted() {
    let api = with_boxes().await;
    for depth in 90..130 {
        let reply = api.post(BOXES, nested(depth)).await;
        if depth > 100 {
            reply.refused(400, "BadRequest");
            assert_eq!(api.get(BOXES).await.ok()["items"], json!([]), "{depth}");
            continue;
        }
        let mut created = reply.ok();
        assert_eq!(api.get(ANY).await.ok(), created, "{depth}");
        assert_eq!(api.get(BOXES).await.ok()["items"], json!([created]));
        created["metadata"]["labels"] = json!({ "a": "b" });
        let updated = api
            .put(&format!("{ANY}?fieldManager=two"), created)
            .await
            .ok();
        assert_eq!(updated["metadata"]["labels"]["a"], "b", "{depth}");
        is_deleted(&api).await;
    }
}

/// Checks DG2: a patch cannot nest what a request cannot.
#[tokio::test]
async fn an_object_does_not_get_too_deep_by_patches() {
    let api = with_boxes().await;
    api.post(BOXES, nested(60)).await.ok();
    let path = "/a".repeat(58);
    let copy = json!([{ "op": "copy", "from": "/a", "path": path }]);
    let refused = api.patch(ANY, "json-patch+json", copy).await;
    let message = refused.refused(400, "BadRequest");
    assert!(
        message.contains("must not nest more than 100 levels"),
        "{message}"
    );
    let mut merged = nested(120);
    merged["metadata"] = json!({});
    let refused = api.patch(ANY, "merge-patch+json", merged).await;
    refused.refused(400, "BadRequest");
    is_deleted(&api).await;
}

/// Checks DG2: the metadata may grow after the object has been accepted.
#[tokio::test]
async fn an_object_at_the_size_limit_is_changed_and_deleted() {
    let api = with_boxes().await;
    let sized = |size: usize| {
        let mut sized = nested(2);
        sized["text"] = "x".repeat(size).into();
        sized
    };
    let refused = api.post(BOXES, sized(1_510_000)).await;
    refused.refused(413, "RequestEntityTooLarge");
    api.post(BOXES, sized(1_500_000)).await.ok();
    let more = |size: usize| json!({ "more": "x".repeat(size) });
    let grow = api.patch(ANY, "merge-patch+json", more(100_000)).await;
    grow.refused(413, "RequestEntityTooLarge");
    api.patch(ANY, "merge-patch+json", more(30_000)).await.ok();
    is_deleted(&api).await;
}

/// Checks DG27: lists and reads name the object, which can be deleted as upstream.
#[tokio::test]
async fn a_value_that_cannot_be_decoded_is_told_and_can_be_deleted() {
    let (api, store) = start().await;
    let fine = api.configmap("fine").await;
    let revision = fine["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = format!("{CONFIGMAPS}?watch=true&resourceVersion={revision}");
    let mut events = Events::of(&api, &watch, "application/json").await;
    let forged = Write::create(FORGED_KEY, "forged".into());
    store.commit(forged).await.unwrap();
    let ended = events.next().await.unwrap();
    assert_eq!(ended["type"], "ERROR");
    assert_eq!(ended["object"]["reason"], "Expired");

    let initial = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    for query in ["", "limit=1", "limit=500", initial] {
        let reply = api.get(&format!("{CONFIGMAPS}?{query}")).await;
        let message = reply.refused(500, "StorageReadError");
        assert_eq!(
            message, "failed to read one or more configmaps from the storage",
            "{query}"
        );
        let cause = &reply.json()["details"]["causes"][0];
        assert_eq!(cause["field"], FORGED_KEY);
        assert_eq!(cause["reason"], "UnexpectedServerResponse");
    }
    let other = api.get("/api/v1/namespaces/other/configmaps").await.ok();
    assert_eq!(other["items"], json!([]));
    for reply in [api.get(FORGED).await, api.delete(FORGED).await] {
        let message = reply.refused(500, "InternalError");
        assert!(message.contains("corrupt object"), "{message}");
    }

    let ignoring = |path: &str| format!("{path}?{IGNORE}");
    let grace = format!("{}&gracePeriodSeconds=0", ignoring(FORGED));
    let message = api.delete(&grace).await.refused(422, "Invalid");
    assert!(
        message.ends_with("cannot be set together with .gracePeriodSeconds"),
        "{message}"
    );
    let readable = api.delete(&ignoring(&format!("{CONFIGMAPS}/fine"))).await;
    let message = readable.refused(422, "Invalid");
    assert!(
        message.contains("is exclusively used to delete corrupt object(s)"),
        "{message}"
    );
    let all = api
        .delete(&ignoring(CONFIGMAPS))
        .await
        .refused(422, "Invalid");
    assert!(
        all.contains("is not allowed with DELETECOLLECTION"),
        "{all}"
    );
    let options = json!({
        "kind": "DeleteOptions", "apiVersion": "v1",
        "ignoreStoreReadErrorWithClusterBreakingPotential": true,
    });
    let request = Request::delete(FORGED).header(CONTENT_TYPE, "application/json");
    let deleted = api
        .send(request, Body::from(options.to_string()))
        .await
        .ok();
    assert_eq!(deleted["status"], "Success");
    assert_eq!(deleted["details"]["name"], "forged");
    assert_eq!(store.get(FORGED_KEY).await, Ok(None));
    assert_eq!(
        api.get(CONFIGMAPS).await.ok()["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    api.configmap("forged").await;
}

/// Checks DG2: an object that becomes unreadable has not been deleted.
#[tokio::test]
async fn a_value_that_is_damaged_is_not_told_as_deleted() {
    let (api, store) = start().await;
    api.configmap("forged").await;
    let list = api.get(CONFIGMAPS).await.ok();
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = format!("{CONFIGMAPS}?watch=true&resourceVersion={revision}");
    let mut events = Events::of(&api, &watch, "application/json").await;
    let entry = store.get(FORGED_KEY).await.unwrap().unwrap();
    let damaged = Write::update(FORGED_KEY, entry.revision, "forged".into());
    let damaged_at = store.commit(damaged).await.unwrap();
    assert_eq!(events.next().await.unwrap()["type"], "ERROR");
    api.get(CONFIGMAPS).await.refused(500, "StorageReadError");
    let repaired = Write::update(FORGED_KEY, damaged_at, entry.value);
    store.commit(repaired).await.unwrap();
    let list = api.get(CONFIGMAPS).await.ok();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
}
