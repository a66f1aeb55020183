//! The events of each kind of request.

use std::sync::Arc;

use axum::body::Body;
use http::Request;
use serde_json::json;
use setpoint_store::Memory;
use setpoint_store::contract::FaultyStore;

use super::{Audit, stages};
use crate::http::api::{CONFIGMAPS, configmap};
use crate::http::streams::{POD, Plane};

#[tokio::test]
async fn a_create_has_an_event_before_and_one_after_it() {
    let audit = Audit::at("Metadata");
    let api = audit.api().await;
    let request = Request::post(CONFIGMAPS)
        .header("content-type", "application/json")
        .header("user-agent", "test/1")
        .header("x-forwarded-for", "10.0.0.1")
        .header(
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        );
    let reply = api.send(request, configmap("a").to_string()).await;
    assert_eq!(reply.code, 201);
    let events = audit.events().await;
    assert_eq!(stages(&events), ["RequestReceived", "ResponseComplete"]);
    let [received, complete] = [&events[0], &events[1]];
    for event in &events {
        assert_eq!(event["kind"], "Event");
        assert_eq!(event["apiVersion"], "audit.k8s.io/v1");
        assert_eq!(event["level"], "Metadata");
        assert_eq!(
            event["auditID"],
            reply.headers["audit-id"].to_str().unwrap()
        );
        assert_eq!(event["requestURI"], CONFIGMAPS);
        assert_eq!(event["verb"], "create");
        assert_eq!(event["userAgent"], "test/1");
        assert_eq!(event["sourceIPs"], json!(["10.0.0.1"]));
        assert_eq!(event["user"]["username"], "system:admin");
        assert_eq!(event["requestObject"], json!(null));
    }
    assert_eq!(
        received["stageTimestamp"],
        received["requestReceivedTimestamp"]
    );
    assert!(received["stageTimestamp"].as_str() <= complete["stageTimestamp"].as_str());
    let time = complete["stageTimestamp"].as_str().unwrap();
    assert_eq!(time.len(), "2026-11-28T10:00:00.000000Z".len(), "{time}");
    let reference = json!({
        "resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1",
    });
    assert_eq!(complete["objectRef"], reference);
    assert_eq!(
        complete["responseStatus"],
        json!({ "metadata": {}, "code": 201 })
    );
    let annotations = &complete["annotations"];
    assert_eq!(annotations["authorization.k8s.io/decision"], "allow");
    assert_eq!(
        annotations["setpoint.dev/trace-id"],
        "4bf92f3577b34da6a3ce929d0e0e4736"
    );
}

#[tokio::test]
async fn stages_and_requests_are_omitted_as_the_policy_says() {
    let audit = Audit::of(
        "- level: None
  nonResourceURLs: [\"/version\"]
- level: Metadata
  omitStages: [RequestReceived]
",
    );
    let api = audit.api().await;
    api.get("/version").await.ok();
    api.get("/api/v1/namespaces/none")
        .await
        .refused(404, "NotFound");
    let events = audit.events().await;
    assert_eq!(stages(&events), ["ResponseComplete"]);
    let status = &events[0]["responseStatus"];
    assert_eq!(
        (&status["code"], &status["reason"]),
        (&json!(404), &json!("NotFound"))
    );
    assert_eq!(status["details"]["name"], "none");
    assert_eq!(events[0]["objectRef"]["namespace"], "none");
}

#[tokio::test]
async fn every_response_has_an_id_which_a_client_may_choose() {
    let audit = Audit::at("Metadata");
    let api = audit.api().await;
    let with_id = |id: &str| Request::get("/version").header("audit-id", id);
    let reply = api.send(with_id("of-the-client"), Body::empty()).await;
    assert_eq!(reply.headers["audit-id"], "of-the-client");
    assert_eq!(audit.events().await[0]["auditID"], "of-the-client");
    let reply = api.send(with_id(&"a".repeat(500)), Body::empty()).await;
    assert_eq!(reply.headers["audit-id"].len(), 36);
    let missing = api.get("/nothing").await;
    assert_eq!(missing.headers["audit-id"].len(), 36);
}

#[tokio::test]
async fn a_watch_has_an_event_when_it_starts_and_one_when_it_ends() {
    let audit = Audit::at("Metadata");
    let api = audit.api().await;
    let request = Request::get(format!("{CONFIGMAPS}?watch=true"));
    let response = api.open(request, Body::empty()).await;
    let events = audit.events().await;
    assert_eq!(stages(&events), ["RequestReceived", "ResponseStarted"]);
    assert_eq!(events[1]["verb"], "watch");
    assert_eq!(events[1]["responseStatus"]["code"], 200);
    drop(response);
    let events = audit.until("ResponseComplete").await;
    assert_eq!(events.len(), 3);
    assert_eq!(events[2]["responseStatus"]["code"], 200);
}

#[tokio::test]
async fn a_connection_to_a_container_is_recorded_until_it_ends() {
    let audit = Audit::at("RequestResponse");
    let auditor = Some(audit.auditor.clone());
    let plane = Plane::with(axum::Router::new(), |registry| {
        registry.with_auditor(auditor)
    })
    .await;
    audit.forget().await;
    let path = format!("{POD}/exec?command=cat&stdin=true&stdout=true");
    let mut client = plane.socket(&path, "v5.channel.k8s.io").await;
    assert!(client.next().await.is_some());
    let events = audit.until("ResponseStarted").await;
    assert_eq!(stages(&events), ["RequestReceived", "ResponseStarted"]);
    assert_eq!(events[1]["responseStatus"]["code"], 101);
    assert_eq!(events[1]["requestURI"], path);
    assert_eq!(events[1]["verb"], "get");
    assert_eq!(events[1]["objectRef"]["subresource"], "exec");
    drop(client);
    let events = audit.until("ResponseComplete").await;
    assert_eq!(events.len(), 3);
}

#[tokio::test]
async fn a_panic_has_an_event() {
    let audit = Audit::at("Metadata");
    let store = FaultyStore::new(Arc::new(Memory::default()));
    let api = audit.api_over(store.clone(), |registry| registry).await;
    store.panic_in_commits(|write| write.key.contains("/configmaps/"));
    let server = api.listen().await;
    let request = Request::post(format!("{}{CONFIGMAPS}", server.url))
        .header("content-type", "application/json")
        .body(Body::from(configmap("a").to_string()))
        .unwrap();
    let answer = setpoint_host::http_client::send(request, 1 << 20)
        .await
        .unwrap();
    assert_eq!(answer.status, 500);
    let events = audit.until("Panic").await;
    assert_eq!(stages(&events), ["RequestReceived", "Panic"]);
    let status = &events[1]["responseStatus"];
    assert_eq!(
        (&status["code"], &status["reason"]),
        (&json!(500), &json!("InternalError"))
    );
}
