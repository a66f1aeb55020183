//! Tests of the loop that establishes definitions and ends their deletion.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use setpoint_gateway::registry::{RequestContext, Target};
use setpoint_model::condition::{self, FALSE, get, is_true};
use setpoint_proto::Reason;
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_proto::meta::DeleteOptions;
use setpoint_store::Memory;
use setpoint_store::contract::FaultyStore;
use setpoint_store::contract::objects::NAMESPACE;
use tokio_util::sync::CancellationToken;

use crate::registry::background::{with_background, with_background_over};
use crate::registry::gateway::TestGateway;

/// A TTL of Events that is longer than any test.
const HOUR: Duration = Duration::from_secs(3600);
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

fn definition(plural: &str, kind: &str) -> CustomResourceDefinition {
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    let json = json!({
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com",
            "names": { "plural": plural, "kind": kind },
            "scope": "Namespaced",
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    });
    serde_json::from_value(json).unwrap()
}

/// Waits until the condition of a definition has a reason.
async fn reached(gateway: &TestGateway, plural: &str, kind: &str, reason: &str) {
    let name = format!("{plural}.example.com");
    let wanted = |one: &CustomResourceDefinition| {
        let condition = get(&one.status.conditions, kind);
        one.metadata.name == name && condition.is_some_and(|found| found.reason == reason)
    };
    gateway.seen(wanted).await;
}

/// Checks DG4: two gateways do not wake each other by what they say about a deletion that fails.
#[tokio::test(start_paused = true)]
async fn a_deletion_that_fails_is_tried_again_without_a_write_for_each_attempt() {
    let writes = Arc::new(AtomicUsize::default());
    let store = FaultyStore::new(Arc::new(Memory::default()));
    let counted = writes.clone();
    store.refuse_commits(move |write| {
        if write.key.ends_with("tabs.example.com") {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        write.key.starts_with("/registry/example.com/tabs/") && write.value.is_none()
    });
    let (gateway, _background) = with_background_over(store).await;
    let stop = CancellationToken::new();
    let another = gateway.another().await.registry;
    tokio::spawn(another.run_background(HOUR, stop.clone(), |_| |_| ()));
    let _stop = stop.drop_guard();
    gateway.create(&definition("tabs", "Tab")).await.unwrap();
    reached(&gateway, "tabs", "Established", "InitialNamesAccepted").await;
    let kind = gateway
        .registry
        .cache()
        .kinds()
        .by_resource("tabs.example.com");
    let kind = kind.unwrap();
    let target = Target::new(kind, NAMESPACE, "", "").unwrap();
    let tab = kind.from_json(br#"{"metadata":{"name":"a"}}"#).unwrap();
    let context = RequestContext::of_server();
    gateway
        .registry
        .create(&context, &target, tab)
        .await
        .unwrap();
    let name = "tabs.example.com";
    let deleted = gateway.delete::<CustomResourceDefinition>(name, DeleteOptions::default());
    deleted.await.unwrap();
    reached(&gateway, "tabs", "Terminating", "InstanceDeletionFailed").await;
    let before = writes.load(Ordering::Relaxed);
    tokio::time::sleep(HOUR).await;
    let written = writes.load(Ordering::Relaxed) - before;
    assert!(written < 5, "{written} writes in an hour");
    gateway.get::<CustomResourceDefinition>(name).await.unwrap();
}

#[tokio::test]
async fn a_new_definition_is_established() {
    let (gateway, _background) = with_background().await;
    let tabs = definition("tabs", "Tab");
    let created = gateway.create(&tabs).await.unwrap();
    assert_eq!(created.status.stored_versions, ["v1"]);
    reached(&gateway, "tabs", "Established", "InitialNamesAccepted").await;
    let name = "tabs.example.com";
    let mut found: CustomResourceDefinition = gateway.get(name).await.unwrap();
    assert_eq!(found.metadata.generation, 1);
    assert_eq!(found.status.accepted_names, found.spec.names);
    found.spec.scope = "Cluster".into();
    found.spec.names.kind = "Sheet".into();
    let error = gateway.update(&found).await.unwrap_err();
    let fields = error.causes().iter().map(|cause| cause.field.as_str());
    assert_eq!(
        fields.collect::<Vec<_>>(),
        ["spec.scope", "spec.names.kind"]
    );
}

#[tokio::test]
async fn a_name_can_be_used_when_its_definition_is_gone() {
    let (gateway, _background) = with_background().await;
    gateway.create(&definition("tabs", "Tab")).await.unwrap();
    reached(&gateway, "tabs", "Established", "InitialNamesAccepted").await;
    gateway.create(&definition("sheets", "Tab")).await.unwrap();
    reached(&gateway, "sheets", "NamesAccepted", "ListKindConflict").await;
    let name = "sheets.example.com";
    let waiting: CustomResourceDefinition = gateway.get(name).await.unwrap();
    assert!(!is_true(&waiting.status.conditions, "Established"));
    let options = DeleteOptions::default();
    let deleted = gateway.delete::<CustomResourceDefinition>("tabs.example.com", options);
    assert!(!deleted.await.unwrap().gone);
    gateway
        .gone::<CustomResourceDefinition>("tabs.example.com")
        .await;
    reached(&gateway, "sheets", "Established", "InitialNamesAccepted").await;
}

#[tokio::test]
async fn a_deletion_waits_until_the_objects_are_deleted() {
    let gateway = TestGateway::start().await;
    gateway.create(&definition("tabs", "Tab")).await.unwrap();
    let name = "tabs.example.com";
    let options = DeleteOptions::default();
    let deleted = gateway
        .delete::<CustomResourceDefinition>(name, options)
        .await;
    assert!(!deleted.unwrap().gone);
    let found: CustomResourceDefinition = gateway.get(name).await.unwrap();
    assert_eq!(found.metadata.finalizers, [FINALIZER]);
    let condition = condition::get(&found.status.conditions, "Terminating").unwrap();
    assert_eq!(condition.reason, "InstanceDeletionPending");
    assert_ne!(condition.status, FALSE);
    let stop = CancellationToken::new();
    let registry = gateway.registry.clone();
    tokio::spawn(registry.run_background(HOUR, stop.clone(), |_| |_| ()));
    let _stop = stop.drop_guard();
    gateway.gone::<CustomResourceDefinition>(name).await;
    let error = gateway
        .get::<CustomResourceDefinition>(name)
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::NotFound);
}
