//! Back ends that fail, and a policy that changes.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use setpoint_audit::{Auditor, Batches, Log, LogOptions, Policy, Post, Sink, Webhook};
use setpoint_gateway::in_process;
use setpoint_gateway::registry::Registry;
use setpoint_store::Memory;
use setpoint_store::cache::Settings;

use crate::http::api::{Api, CONFIGMAPS, configmap};

const POLICY: &str =
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n";

/// A server that never answers.
struct Hanging;

impl Post for Hanging {
    async fn post(&self, _json: Bytes) -> Result<(), String> {
        std::future::pending().await
    }
}

async fn registry(sink: Sink) -> (Arc<Registry>, Arc<Auditor>) {
    let policy = Policy::read(POLICY.as_bytes()).unwrap();
    let auditor = Arc::new(Auditor::new(policy, sink));
    let audited = Some(auditor.clone());
    let with = |registry: Registry| registry.with_auditor(audited);
    let store = Arc::new(Memory::default());
    (
        in_process::registry_with(store, Settings::default(), with).await,
        auditor,
    )
}

/// Neither a webhook that hangs with a full queue nor a full disk stops or refuses a request.
#[tokio::test]
async fn back_ends_that_fail_delay_no_request() {
    let batches = Batches {
        size: 1,
        wait: Duration::ZERO,
        initial_backoff: Duration::from_secs(1),
    };
    let sink = Webhook::start(Hanging, batches, 4, Sink::default());
    let full = LogOptions {
        path: "/dev/full".into(),
        max_size: 1,
        max_age: Duration::ZERO,
        max_backups: 1,
    };
    let sink = Log::start(full, 4, sink).unwrap();
    let (registry, auditor) = registry(sink).await;
    let api = Api::over(registry).await;
    for number in 0..50 {
        let created = api.post(CONFIGMAPS, configmap(&format!("a{number}")));
        let created = tokio::time::timeout(Duration::from_secs(5), created).await;
        created.unwrap().ok();
    }
    let metrics = api.get("/metrics").await;
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    let value = |name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.rsplit(' ').next());
        value.and_then(|value| value.parse::<u64>().ok())
    };
    assert!(value("apiserver_audit_event_total") >= Some(100));
    assert!(value("apiserver_audit_error_total{plugin=\"buffered\"}") >= Some(50));
    assert!(value("apiserver_audit_level_total{level=\"RequestResponse\"}") >= Some(50));
    assert_eq!(value("apiserver_audit_requests_rejected_total"), Some(0));
    // Nobody waits for what hangs.
    let limit = Duration::from_millis(100);
    tokio::time::timeout(Duration::from_secs(5), auditor.sink().flush(limit))
        .await
        .unwrap();
}

#[tokio::test]
async fn an_event_tells_of_a_policy_that_is_not_valid() {
    let (registry, auditor) = registry(Sink::default()).await;
    let api = Api::over(registry.clone()).await;
    let namespace = serde_json::json!({ "metadata": { "name": "setpoint-system" } });
    api.post("/api/v1/namespaces", namespace).await.ok();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policy.yaml");
    fs::write(&path, POLICY.replace("RequestResponse", "Everything")).unwrap();
    let followed = registry.follow_audit_policy(&auditor, path, "gateway-0");
    let events = "/api/v1/namespaces/default/events";
    let told = api.eventually(events, |reply| !reply.json()["items"][0].is_null());
    let told = tokio::select! {
        () = followed => unreachable!("it runs until dropped"),
        told = told => told.json(),
    };
    let event = &told["items"][0];
    assert_eq!(event["reason"], "AuditPolicyInvalid");
    let message = event["message"].as_str().unwrap();
    let start = r#"the audit policy before stays in force (of gateway-0): rules[0].level: Unsupported value: "Everything""#;
    assert!(message.starts_with(start), "{message}");
}
