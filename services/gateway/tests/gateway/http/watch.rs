//! Watch streams.

use std::time::Duration;

use axum::body::BodyDataStream;
use futures::StreamExt as _;
use http::Request;
use http::header::ACCEPT;
use serde_json::{Value, json};
use setpoint_store::cache;
use tokio::time::timeout;

use crate::http::api::{Api, CONFIGMAPS, DEPLOYMENTS, deployment};

/// The stream of a watch.
pub struct Events {
    body: BodyDataStream,
    read: Vec<u8>,
}

impl Events {
    pub async fn of(api: &Api, path: &str, accept: &str) -> Self {
        let request = Request::get(path).header(ACCEPT, accept);
        let response = api.open(request, "").await;
        assert_eq!(response.status(), 200);
        Self {
            body: response.into_body().into_data_stream(),
            read: Vec::new(),
        }
    }

    /// Returns the next event; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let chunk = timeout(Duration::from_secs(60), self.body.next());
            let chunk = chunk.await.expect("an event or the end arrives in time")?;
            self.read.extend_from_slice(&chunk.unwrap());
        }
    }

    /// Returns the type of the next event and the name of its object.
    async fn named(&mut self) -> (String, String) {
        let event = self.next().await.expect("the stream continues");
        let name = event["object"]["metadata"]["name"]
            .as_str()
            .unwrap_or_default();
        (event["type"].as_str().unwrap().to_owned(), name.to_owned())
    }
}

fn event(of: &str, name: &str) -> (String, String) {
    (of.into(), name.into())
}

async fn watch(api: &Api, query: &str) -> Events {
    Events::of(
        api,
        &format!("{CONFIGMAPS}?watch=true{query}"),
        "application/json",
    )
    .await
}

#[tokio::test]
async fn a_watch_resumes_from_the_revision_of_a_list() {
    let api = Api::start().await;
    api.configmap("a").await;
    let list = api.get(CONFIGMAPS).await.ok();
    let from = list["metadata"]["resourceVersion"].as_str().unwrap();
    let mut events = watch(&api, &format!("&resourceVersion={from}")).await;
    api.configmap("b").await;
    let patch = json!({ "data": { "c": "d" } });
    api.patch(&format!("{CONFIGMAPS}/a"), "merge-patch+json", patch)
        .await
        .ok();
    api.delete(&format!("{CONFIGMAPS}/b")).await.ok();
    assert_eq!(events.named().await, event("ADDED", "b"));
    let modified = events.next().await.unwrap();
    assert_eq!(modified["type"], "MODIFIED");
    assert_eq!(modified["object"]["kind"], "ConfigMap");
    assert_eq!(modified["object"]["data"]["c"], "d");
    assert_eq!(events.named().await, event("DELETED", "b"));
}

#[tokio::test]
async fn a_watch_without_a_revision_begins_with_what_exists() {
    let api = Api::start().await;
    api.configmap("a").await;
    let mut events = watch(&api, "").await;
    assert_eq!(events.named().await, event("ADDED", "a"));
    api.configmap("b").await;
    assert_eq!(events.named().await, event("ADDED", "b"));
}

#[tokio::test]
async fn the_initial_events_end_with_a_bookmark() {
    let api = Api::start().await;
    api.configmap("a").await;
    let query =
        "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = watch(&api, query).await;
    assert_eq!(events.named().await, event("ADDED", "a"));
    let mark = events.next().await.unwrap();
    assert_eq!(mark["type"], "BOOKMARK");
    let metadata = &mark["object"]["metadata"];
    assert_eq!(metadata["annotations"]["k8s.io/initial-events-end"], "true");
    assert!(metadata["resourceVersion"].is_string());
    assert_eq!(mark["object"]["kind"], "ConfigMap");
}

#[tokio::test]
async fn selectors_narrow_a_watch() {
    let api = Api::start().await;
    api.configmap("a").await;
    api.configmap("b").await;
    let mut events = watch(&api, "&labelSelector=name%3Db").await;
    assert_eq!(events.named().await, event("ADDED", "b"));
    let unlabel = json!({ "metadata": { "labels": { "name": null } } });
    api.patch(&format!("{CONFIGMAPS}/b"), "merge-patch+json", unlabel)
        .await
        .ok();
    assert_eq!(events.named().await, event("DELETED", "b"));
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_after_its_timeout() {
    let api = Api::start().await;
    let mut events = watch(&api, "&timeoutSeconds=1").await;
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_watch_from_an_expired_revision_ends_with_an_error_event() {
    let api = Api::with(cache::Settings {
        log_records: 2,
        ..Default::default()
    })
    .await;
    let first = api.configmap("a").await;
    for name in ["b", "c", "d", "e"] {
        api.configmap(name).await;
    }
    let from = first["metadata"]["resourceVersion"].as_str().unwrap();
    let mut events = watch(&api, &format!("&resourceVersion={from}")).await;
    let error = events.next().await.unwrap();
    assert_eq!(error["type"], "ERROR");
    assert_eq!(error["object"]["kind"], "Status");
    assert_eq!(error["object"]["reason"], "Expired");
    assert_eq!(error["object"]["code"], 410);
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn kubectl_watches_tables() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, deployment("web")).await.ok();
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let mut events = Events::of(&api, &format!("{DEPLOYMENTS}?watch=true"), table).await;
    let event = events.next().await.unwrap();
    assert_eq!(event["type"], "ADDED");
    assert_eq!(event["object"]["kind"], "Table");
    assert_eq!(event["object"]["rows"][0]["cells"][0], "web");
}

#[tokio::test]
async fn contradictory_watch_options_are_refused() {
    let api = Api::start().await;
    for query in [
        "sendInitialEvents=true",
        "resourceVersionMatch=NotOlderThan",
        "sendInitialEvents=true&resourceVersionMatch=Exact",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x",
    ] {
        let path = format!("{CONFIGMAPS}?watch=true&{query}");
        api.get(&path).await.refused(422, "Invalid");
    }
}

/// Checks F25: 0 means any revision, so it never expires.
#[tokio::test]
async fn a_watch_for_changes_from_any_revision_begins_now() {
    let api = Api::start().await;
    api.configmap("a").await;
    let from = "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0";
    let mut events = watch(&api, from).await;
    api.configmap("b").await;
    assert_eq!(events.named().await, event("ADDED", "b"));
}

/// Checks F28.
#[tokio::test]
async fn the_deprecated_paths_of_watches_are_served() {
    let api = Api::start().await;
    for name in ["a", "b"] {
        api.configmap(name).await;
    }
    let all = "/api/v1/watch/namespaces/default/configmaps";
    let mut events = Events::of(&api, all, "application/json").await;
    let seen = [events.named().await, events.named().await];
    assert!(seen.contains(&event("ADDED", "a")) && seen.contains(&event("ADDED", "b")));
    let mut events = Events::of(&api, &format!("{all}/b"), "application/json").await;
    assert_eq!(events.named().await, event("ADDED", "b"));
    let other = format!("{all}/b?fieldSelector=metadata.name%3Da");
    assert_eq!(
        api.get(&other).await.refused(400, "BadRequest"),
        "fieldSelector metadata.name doesn't match requested name"
    );
    let patch = json!({ "data": { "c": "d" } });
    for name in ["a", "b"] {
        let path = format!("{CONFIGMAPS}/{name}");
        api.patch(&path, "merge-patch+json", patch.clone())
            .await
            .ok();
    }
    assert_eq!(events.named().await, event("MODIFIED", "b"));
}
