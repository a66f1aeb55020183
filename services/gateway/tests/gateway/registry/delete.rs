//! Tests of the verb `delete`.

use serde_json::json;
use setpoint_proto::Reason;
use setpoint_proto::core::{ConfigMap, Pod};
use setpoint_proto::meta::{DeleteOptions, Preconditions};
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_store::contract::objects::config_map;

use crate::registry::gateway::{TestGateway, pod};

fn with_grace(seconds: i64) -> DeleteOptions {
    DeleteOptions {
        grace_period_seconds: Some(seconds),
        ..Default::default()
    }
}

#[tokio::test]
async fn an_object_without_finalizers_is_removed_at_once() {
    let gateway = TestGateway::start().await;
    gateway.create(&config_map("a", "1")).await.unwrap();
    let deleted = gateway
        .delete::<ConfigMap>("a", DeleteOptions::default())
        .await
        .unwrap();
    assert!(deleted.gone);
    assert_eq!(
        gateway.get::<ConfigMap>("a").await.unwrap_err().reason,
        Reason::NotFound
    );
    let error = gateway
        .delete::<ConfigMap>("a", DeleteOptions::default())
        .await
        .err()
        .unwrap();
    assert_eq!(error.message, r#"configmaps "a" not found"#);
}

/// Checks N4 at the gateway: a bound Pod is kept until its node agent deletes it without a grace period.
#[tokio::test]
async fn a_bound_pod_is_kept_until_its_node_agent_deletes_it() {
    let gateway = TestGateway::start().await;
    gateway.create(&pod("one")).await.unwrap();
    gateway.bind("one", "node-1").await.unwrap();
    let deleted = gateway
        .delete::<Pod>("one", DeleteOptions::default())
        .await
        .unwrap();
    assert!(!deleted.gone);
    let ending = gateway.get::<Pod>("one").await.unwrap();
    assert!(ending.metadata.deletion_timestamp.is_some());
    assert_eq!(ending.metadata.deletion_grace_period_seconds, Some(30));

    let again = gateway
        .delete::<Pod>("one", DeleteOptions::default())
        .await
        .unwrap();
    assert!(!again.gone);
    assert_eq!(
        again.response.revision.to_string(),
        ending.metadata.resource_version
    );

    assert!(
        gateway
            .delete::<Pod>("one", with_grace(0))
            .await
            .unwrap()
            .gone
    );
    assert_eq!(
        gateway.get::<Pod>("one").await.unwrap_err().reason,
        Reason::NotFound
    );
}

#[tokio::test]
async fn an_unbound_or_terminated_pod_is_removed_at_once() {
    let gateway = TestGateway::start().await;
    gateway.create(&pod("unbound")).await.unwrap();
    assert!(
        gateway
            .delete::<Pod>("unbound", DeleteOptions::default())
            .await
            .unwrap()
            .gone
    );

    gateway.create(&pod("done")).await.unwrap();
    gateway.bind("done", "node-1").await.unwrap();
    let mut report = pod("done");
    report.status.phase = "Succeeded".into();
    gateway.update_part("status", &report).await.unwrap();
    assert!(
        gateway
            .delete::<Pod>("done", DeleteOptions::default())
            .await
            .unwrap()
            .gone
    );
}

#[tokio::test]
async fn an_object_is_removed_with_its_last_finalizer() {
    let gateway = TestGateway::start().await;
    let mut map = config_map("a", "1");
    map.metadata.finalizers = vec!["example.com/b".into()];
    gateway.create(&map).await.unwrap();
    assert!(
        !gateway
            .delete::<ConfigMap>("a", DeleteOptions::default())
            .await
            .unwrap()
            .gone
    );
    let mut ending = gateway.get::<ConfigMap>("a").await.unwrap();
    assert!(ending.metadata.deletion_timestamp.is_some());

    ending.metadata.finalizers.push("example.com/c".into());
    let error = gateway.update(&ending).await.unwrap_err();
    assert!(
        error
            .message
            .contains("no new finalizers can be added if the object is being deleted")
    );

    let off = json!({"metadata": {"finalizers": null}});
    gateway
        .patch::<ConfigMap>("a", Type::Merge, off)
        .await
        .unwrap();
    assert_eq!(
        gateway.get::<ConfigMap>("a").await.unwrap_err().reason,
        Reason::NotFound
    );
}

/// Checks I4 at the gateway: a deletion with a uid never removes another object of the same name.
#[tokio::test]
async fn a_deletion_checks_its_preconditions() {
    let gateway = TestGateway::start().await;
    let map = gateway.create(&config_map("a", "1")).await.unwrap();
    let with_preconditions = |uid: &str, revision: &str| DeleteOptions {
        preconditions: Some(Preconditions {
            uid: Some(uid.into()),
            resource_version: Some(revision.into()),
        }),
        ..Default::default()
    };
    let (uid, revision) = (
        map.metadata.uid.as_str(),
        map.metadata.resource_version.as_str(),
    );
    let other = gateway
        .delete::<ConfigMap>("a", with_preconditions("other", ""))
        .await
        .err()
        .unwrap();
    assert_eq!(other.reason, Reason::Conflict);
    assert!(
        other
            .message
            .contains("the UID in the precondition (other) does not match")
    );
    let old = gateway
        .delete::<ConfigMap>("a", with_preconditions(uid, "1"))
        .await
        .err()
        .unwrap();
    assert!(
        old.message
            .contains("the ResourceVersion in the precondition (1) does not match")
    );
    assert!(
        gateway
            .delete::<ConfigMap>("a", with_preconditions(uid, revision))
            .await
            .unwrap()
            .gone
    );
}

#[tokio::test]
async fn a_dry_run_deletes_nothing() {
    let gateway = TestGateway::start().await;
    gateway.create(&config_map("a", "1")).await.unwrap();
    let dry = DeleteOptions {
        dry_run: vec!["All".into()],
        ..Default::default()
    };
    assert!(gateway.delete::<ConfigMap>("a", dry).await.unwrap().gone);
    assert!(gateway.get::<ConfigMap>("a").await.is_ok());
}

#[tokio::test]
async fn a_watcher_gets_the_cause_of_a_deletion() {
    use futures::StreamExt as _;
    use setpoint_gateway::registry::{Filter, RequestContext, Start, WatchSpec};
    use setpoint_store::contract::objects::kind;

    let gateway = TestGateway::start().await;
    gateway.create(&config_map("a", "1")).await.unwrap();
    let spec = WatchSpec {
        filter: Filter::all(kind::<ConfigMap>(), ""),
        start: Start::Now,
        bookmarks: false,
    };
    let mut events = gateway
        .registry
        .watch(&RequestContext::of_server(), spec)
        .await
        .unwrap();
    let context = RequestContext::of_server().by("kubectl");
    let target = crate::registry::gateway::target::<ConfigMap>("a", "");
    gateway
        .registry
        .delete(&context, &target, &DeleteOptions::default())
        .await
        .unwrap();
    let event = events.next().await.unwrap().unwrap();
    assert_eq!(event.r#type, setpoint_proto::EventType::Deleted);
    assert_eq!(event.object.cause().unwrap().writer, "kubectl");
}
