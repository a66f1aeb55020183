//! Watches in a WebSocket.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use futures::StreamExt as _;
use http::HeaderName;
use http::header::{ACCEPT, ORIGIN, SEC_WEBSOCKET_PROTOCOL, USER_AGENT};
use prost::Message as _;
use serde_json::{Value, json};
use setpoint_gateway::in_process::InProcess;
use setpoint_proto::meta::WatchEvent;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::http::api::{Api, CONFIGMAPS, DEPLOYMENTS, PROTOBUF, deployment};
use crate::http::streams::Client;

async fn open<const N: usize>(
    server: &InProcess,
    query: &str,
    headers: [(HeaderName, &str); N],
) -> Client {
    let path = format!("{CONFIGMAPS}?watch=true{query}");
    Client::open(server.address, &path, headers).await.unwrap()
}

/// Returns the next message.
async fn next(client: &mut Client) -> Message {
    let message = timeout(Duration::from_secs(60), client.socket.next());
    let message = message.await.expect("a message arrives in time");
    message.expect("the stream continues").unwrap()
}

/// Returns the next event, which is a text.
async fn event(client: &mut Client) -> Value {
    match next(client).await {
        Message::Text(text) => serde_json::from_str(&text).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn summary(event: &Value) -> (&str, &str) {
    let name = event["object"]["metadata"]["name"].as_str();
    (event["type"].as_str().unwrap(), name.unwrap_or_default())
}

/// Waits for the end, which must be a regular one.
async fn closes(client: &mut Client) {
    match next(client).await {
        Message::Close(Some(frame)) => assert_eq!(frame.code, CloseCode::Normal),
        other => panic!("{other:?}"),
    }
}

/// Checks DG16.
#[tokio::test]
async fn a_token_among_the_subprotocols_is_verified_and_not_echoed() {
    let api = Api::start().await;
    let server = api.listen().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let made = api
        .post(&format!("{accounts}/default/token"), json!({}))
        .await
        .ok();
    let genuine = made["status"]["token"].as_str().unwrap();
    let open = async |token: &str, others: &str| {
        let token = BASE64_URL_SAFE_NO_PAD.encode(token);
        let offered = format!("base64url.bearer.authorization.k8s.io.{token}{others}");
        let path = format!("{CONFIGMAPS}?watch=true");
        let headers = [(SEC_WEBSOCKET_PROTOCOL, offered.as_str())];
        let opened = Client::open(server.address, &path, headers).await;
        opened.map(|client| client.protocol)
    };
    let refused = async |token: &str, others: &str| {
        let refused = open(token, others).await.unwrap_err();
        let body = String::from_utf8(refused.body().clone().unwrap()).unwrap();
        assert!(body.contains("Unauthorized"), "{body}");
        refused.status().as_u16()
    };
    assert_eq!(open(genuine, ", mine").await.unwrap(), "mine");
    assert_eq!(refused(genuine, "").await, 401);
    assert_eq!(refused("not-a-token", ", mine").await, 401);
}

#[tokio::test]
async fn each_event_is_a_text() {
    let api = Api::start().await;
    let server = api.listen().await;
    api.configmap("a").await;
    let mut client = open(&server, "", []).await;
    assert_eq!(client.protocol, "");
    assert_eq!(summary(&event(&mut client).await), ("ADDED", "a"));
    for name in ["b", "c"] {
        api.configmap(name).await;
    }
    assert_eq!(summary(&event(&mut client).await), ("ADDED", "b"));
    assert_eq!(summary(&event(&mut client).await), ("ADDED", "c"));
    api.delete(&format!("{CONFIGMAPS}/b")).await.ok();
    let deleted = event(&mut client).await;
    assert_eq!(summary(&deleted), ("DELETED", "b"));
    assert_eq!(deleted["object"]["kind"], "ConfigMap");
}

#[tokio::test]
async fn each_event_in_protobuf_is_a_message_of_bytes_without_a_length() {
    let api = Api::start().await;
    let server = api.listen().await;
    api.configmap("a").await;
    let mut client = open(&server, "", [(ACCEPT, PROTOBUF)]).await;
    let Message::Binary(bytes) = next(&mut client).await else {
        panic!("it is a message of bytes");
    };
    let event = WatchEvent::decode(bytes).unwrap();
    assert_eq!(event.r#type, "ADDED");
    assert!(event.object.raw.starts_with(b"k8s\0"));
}

#[tokio::test]
async fn a_subprotocol_of_the_client_is_accepted_whatever_it_is() {
    let api = Api::start().await;
    let server = api.listen().await;
    for (offered, expected) in [
        ("base64.binary.k8s.io", "base64.binary.k8s.io"),
        ("x, y", "x"),
    ] {
        let client = open(&server, "", [(SEC_WEBSOCKET_PROTOCOL, offered)]).await;
        assert_eq!(client.protocol, expected);
    }
}

#[tokio::test]
async fn a_watch_ends_with_its_timeout_by_a_regular_close() {
    let api = Api::start().await;
    let server = api.listen().await;
    let mut client = open(&server, "&timeoutSeconds=1", []).await;
    closes(&mut client).await;
}

#[tokio::test]
async fn a_watch_from_an_expired_revision_ends_with_an_error_event() {
    let api = Api::with(setpoint_store::cache::Settings {
        log_records: 2,
        ..Default::default()
    })
    .await;
    let server = api.listen().await;
    let first = api.configmap("a").await;
    for name in ["b", "c", "d", "e"] {
        api.configmap(name).await;
    }
    let from = first["metadata"]["resourceVersion"].as_str().unwrap();
    let mut client = open(&server, &format!("&resourceVersion={from}"), []).await;
    let error = event(&mut client).await;
    assert_eq!(error["type"], "ERROR");
    assert_eq!(error["object"]["reason"], "Expired");
    closes(&mut client).await;
}

#[tokio::test]
async fn an_invalid_watch_is_refused_before_the_upgrade() {
    let api = Api::start().await;
    let server = api.listen().await;
    let path = format!("{CONFIGMAPS}?watch=true&labelSelector=!");
    let refused = Client::open(server.address, &path, []).await;
    assert_eq!(refused.err().unwrap().status(), 400);
    let path = format!("{CONFIGMAPS}?watch=true");
    let yaml = [(ACCEPT, "application/yaml")];
    let refused = Client::open(server.address, &path, yaml).await;
    assert_eq!(refused.err().unwrap().status(), 406);
}

#[tokio::test]
async fn tables_and_the_deprecated_paths_are_served_too() {
    let api = Api::start().await;
    let server = api.listen().await;
    api.post(DEPLOYMENTS, deployment("web")).await.ok();
    let path = DEPLOYMENTS.replace("/v1/", "/v1/watch/");
    let table = [(ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let client = Client::open(server.address, &path, table).await;
    let mut client = client.unwrap();
    let event = event(&mut client).await;
    assert_eq!(event["object"]["kind"], "Table");
    assert_eq!(event["object"]["rows"][0]["cells"][0], "web");
}

/// An object in JSON may be larger than what other WebSockets send at once.
#[tokio::test]
async fn an_event_is_as_large_as_its_object() {
    let api = Api::start().await;
    let server = api.listen().await;
    let text = "\u{1}".repeat(400_000);
    let big = json!({ "metadata": { "name": "big" }, "data": { "a": text } });
    api.post(CONFIGMAPS, big).await.ok();
    let mut client = open(&server, "", []).await;
    let event = event(&mut client).await;
    assert_eq!(
        event["object"]["data"]["a"].as_str().unwrap().len(),
        400_000
    );
}

/// Checks F4.
#[tokio::test]
async fn a_page_of_another_site_cannot_watch_and_a_program_can() {
    let api = Api::start().await;
    let server = api.listen().await;
    let path = format!("{CONFIGMAPS}?watch=true");
    for page in ["http://evil.example", "http://localhost:8080", "null"] {
        let refused = Client::open(server.address, &path, [(ORIGIN, page)]).await;
        assert_eq!(refused.err().unwrap().status(), 403, "{page}");
    }
    let local = (ORIGIN, "http://localhost");
    let browser = (USER_AGENT, "Mozilla/5.0 (X11; Linux x86_64)");
    let refused = Client::open(server.address, &path, [local, browser]).await;
    assert_eq!(refused.err().unwrap().status(), 403);
    let program = Client::open(server.address, &path, [(ORIGIN, "http://localhost")]).await;
    assert!(program.is_ok());
}
