//! Tests of the background tasks: initial namespaces, expiry; and of namespaces that are being deleted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use setpoint_gateway::registry::{AtLeast, Filter, RequestContext, Target};
use setpoint_gateway::verbs::{ListParams, RevisionMatch};
use setpoint_proto::Reason;
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::{Event, Namespace};
use setpoint_proto::flowcontrol::{FlowSchema, PriorityLevelConfiguration};
use setpoint_proto::meta::DeleteOptions;
use setpoint_proto::networking::ServiceCidr;
use setpoint_store::Store;
use setpoint_store::contract::objects::{NAMESPACE, config_map, kind};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::registry::gateway::TestGateway;

/// A TTL longer than any test.
const HOUR: Duration = Duration::from_secs(3600);

/// Starts a gateway with its background tasks, which end when the guard is dropped.
pub async fn with_background() -> (TestGateway, DropGuard) {
    with_event_ttl(HOUR).await
}

/// Starts a gateway over a store, with its background tasks.
pub async fn with_background_over(store: Arc<dyn Store>) -> (TestGateway, DropGuard) {
    in_background(TestGateway::start_over(store).await, HOUR)
}

async fn with_event_ttl(event_ttl: Duration) -> (TestGateway, DropGuard) {
    in_background(TestGateway::start().await, event_ttl)
}

fn in_background(gateway: TestGateway, event_ttl: Duration) -> (TestGateway, DropGuard) {
    let stop = CancellationToken::new();
    tokio::spawn(
        gateway
            .registry
            .clone()
            .run_background(event_ttl, stop.clone(), |_| |_| ()),
    );
    (gateway, stop.drop_guard())
}

#[tokio::test]
async fn no_object_is_created_in_a_terminating_namespace() {
    let gateway = TestGateway::start().await;
    gateway
        .delete::<Namespace>(NAMESPACE, DeleteOptions::default())
        .await
        .unwrap();
    let ending = gateway.get::<Namespace>(NAMESPACE).await.unwrap();
    assert_eq!(ending.status.phase, "Terminating");
    let error = gateway.create(&config_map("a", "1")).await.unwrap_err();
    assert_eq!(error.reason, Reason::Forbidden);
    assert_eq!(
        error.message,
        r#"configmaps "a" is forbidden: unable to create new content in namespace production because it is being terminated"#
    );
    assert_eq!(error.causes()[0].reason, "NamespaceTerminating");
}

#[tokio::test]
async fn the_initial_namespaces_are_created_and_cannot_be_deleted() {
    let (gateway, _background) = with_background().await;
    for name in [
        "default",
        "kube-system",
        "setpoint-replicas",
        "setpoint-system",
    ] {
        gateway.there::<Namespace>(name).await;
        let error = gateway
            .delete::<Namespace>(name, DeleteOptions::default())
            .await
            .err()
            .unwrap();
        assert_eq!(
            error.message,
            format!("namespaces {name:?} is forbidden: this namespace may not be deleted")
        );
    }
}

/// Deletes a namespace, as its controller does when it is empty.
async fn delete_namespace(gateway: &TestGateway, name: &str) {
    let options = DeleteOptions::default();
    gateway.delete::<Namespace>(name, options).await.unwrap();
    let mut ending = gateway.get::<Namespace>(name).await.unwrap();
    ending.spec.finalizers.clear();
    gateway.update_part("finalize", &ending).await.unwrap();
    gateway.gone::<Namespace>(name).await;
}

/// Checks U5: it comes back within a minute.
#[tokio::test(start_paused = true)]
async fn an_object_that_every_cluster_has_is_created_again() {
    let (gateway, _background) = with_background().await;
    gateway.there::<FlowSchema>("system-node-high").await;
    delete_namespace(&gateway, "kube-node-lease").await;
    let options = DeleteOptions::default;
    for name in ["exempt", "catch-all"] {
        gateway.delete::<FlowSchema>(name, options()).await.unwrap();
        let level = gateway.delete::<PriorityLevelConfiguration>(name, options());
        level.await.unwrap();
        gateway.gone::<PriorityLevelConfiguration>(name).await;
    }
    let range = gateway.delete::<ServiceCidr>("kubernetes", options());
    range.await.unwrap();
    gateway.gone::<ServiceCidr>("kubernetes").await;
    gateway.there::<Namespace>("kube-node-lease").await;
    gateway.there::<ServiceCidr>("kubernetes").await;
    for name in ["exempt", "catch-all"] {
        gateway.there::<FlowSchema>(name).await;
        gateway.there::<PriorityLevelConfiguration>(name).await;
    }
}

/// Checks U5: a store that refuses all writes is not flooded.
#[tokio::test(start_paused = true)]
async fn creating_an_object_again_backs_off() {
    let (gateway, _background) = with_background().await;
    gateway.there::<FlowSchema>("system-node-high").await;
    let range = gateway.delete::<ServiceCidr>("kubernetes", DeleteOptions::default());
    range.await.unwrap();
    gateway.gone::<ServiceCidr>("kubernetes").await;
    let attempts = Arc::new(AtomicUsize::default());
    let counter = attempts.clone();
    gateway.store.panic_in_commits(move |write| {
        let counts = write.key.contains("servicecidrs");
        counter.fetch_add(usize::from(counts), Ordering::Relaxed);
        false
    });
    gateway.store.cut();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let attempts = attempts.load(Ordering::Relaxed);
    assert!((10..60).contains(&attempts), "{attempts}");
    gateway.store.release();
    gateway.there::<ServiceCidr>("kubernetes").await;
}

/// Checks F30: the TTL counts from the last write, not from the timestamps of the Event.
#[tokio::test]
async fn an_event_expires_after_its_last_write() {
    let (gateway, _background) = with_event_ttl(Duration::from_millis(200)).await;
    let event = |name: &str, last: &str| {
        let mut event = Event::default();
        event.metadata.namespace = NAMESPACE.into();
        event.metadata.name = name.into();
        event.involved_object.namespace = NAMESPACE.into();
        event.last_timestamp = last.parse::<Timestamp>().unwrap().into();
        event
    };
    for (name, last) in [
        ("old", "1999-01-01T00:00:00Z"),
        ("eternal", "2999-01-01T00:00:00Z"),
    ] {
        gateway.create(&event(name, last)).await.unwrap();
        gateway.gone::<Event>(name).await;
    }
}

/// Checks F41: a replica is not considered gone because the clock of this gateway is ahead of its own.
#[tokio::test]
async fn a_lease_of_a_replica_with_a_slow_clock_does_not_expire() {
    let (gateway, _background) = with_event_ttl(Duration::from_millis(200)).await;
    gateway.there::<Namespace>("setpoint-replicas").await;
    let target = Target::new(kind::<Lease>(), "setpoint-replicas", "", "").unwrap();
    let mut lease = Lease::default();
    lease.metadata.name = "agent-0".into();
    lease.spec.holder_identity = Some("agent-0".into());
    lease.spec.lease_duration_seconds = Some(40);
    let long_ago = Timestamp::now() - Duration::from_secs(86_400);
    lease.spec.renew_time = Some(long_ago.into());
    let context = RequestContext::of_server();
    let created = gateway
        .registry
        .create(&context, &target, Box::new(lease))
        .await;
    created.unwrap();
    // Once this Event has expired, the Leases have been checked, too.
    let mut event = Event::default();
    event.metadata.name = "old".into();
    event.involved_object.namespace = NAMESPACE.into();
    gateway.create(&event).await.unwrap();
    gateway.gone::<Event>("old").await;
    let target = Target::new(kind::<Lease>(), "setpoint-replicas", "agent-0", "").unwrap();
    let there = gateway
        .registry
        .get(&context, &target, AtLeast::Newest)
        .await;
    assert!(there.is_ok());
}

/// Checks F26.
#[tokio::test]
async fn namespaces_cannot_be_deleted_as_a_collection() {
    let gateway = TestGateway::start().await;
    let params = ListParams {
        filter: Filter::all(kind::<Namespace>(), ""),
        limit: 0,
        continue_token: String::new(),
        at: RevisionMatch::NotOlderThan(AtLeast::Newest),
    };
    let deleted = gateway
        .registry
        .delete_collection(
            &RequestContext::of_server(),
            &params,
            &DeleteOptions::default(),
        )
        .await;
    let error = deleted.unwrap_err();
    assert_eq!(error.reason, Reason::MethodNotAllowed);
    assert!(gateway.get::<Namespace>(NAMESPACE).await.is_ok());
}
