//! Tests of the namespace-controller against a gateway in this process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod custom;
mod fixture;
mod refused;
mod steps;
mod unreadable;

use setpoint_model::{Key, condition};
use setpoint_proto::Reason;
use setpoint_proto::core::{ConfigMap, Namespace, Pod};
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{DeleteRequest, TraceContext, Traceparent};

use fixture::{Fixture, NAMESPACE, config_map, pod};

#[tokio::test]
async fn a_namespace_is_deleted_with_its_content() {
    let fixture = Fixture::running().await;
    fixture.client.create(&config_map("a")).await.unwrap();
    fixture.client.create(&pod("one")).await.unwrap();
    fixture.end().await;
    fixture.until_gone().await;
    for error in [
        fixture.get::<ConfigMap>("a").await.unwrap_err(),
        fixture.get::<Pod>("one").await.unwrap_err(),
    ] {
        assert_eq!(error.reason, Reason::NotFound);
    }
}

#[tokio::test]
async fn a_namespace_that_ended_before_the_controller_began_is_deleted() {
    let fixture = Fixture::start().await;
    fixture.client.create(&config_map("a")).await.unwrap();
    fixture.end().await;
    let _controller = fixture.run();
    fixture.until_gone().await;
}

/// Checks K9: Pods are deleted first, and the conditions name the remaining content.
#[tokio::test]
async fn a_namespace_deletes_its_pods_before_everything_else() {
    let fixture = Fixture::running().await;
    let mut held = pod("held");
    held.metadata.finalizers = vec!["example.com/held".into()];
    fixture.client.create(&held).await.unwrap();
    fixture.client.create(&config_map("a")).await.unwrap();
    fixture.end().await;
    let ending = fixture
        .until(|namespace| {
            condition::is_true(&namespace.status.conditions, "NamespaceContentRemaining")
        })
        .await;
    let message = |kind: &str| {
        let condition = condition::get(&ending.status.conditions, kind).unwrap();
        (condition.status.clone(), condition.message.clone())
    };
    assert_eq!(
        message("NamespaceContentRemaining"),
        (
            "True".into(),
            "Some resources are remaining: configmaps. has 1 resource instances, \
             pods. has 1 resource instances, serviceaccounts. has 1 resource instances"
                .into()
        )
    );
    assert_eq!(
        message("NamespaceFinalizersRemaining").1,
        "Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances"
    );
    assert_eq!(message("NamespaceDeletionContentFailure").0, "False");
    let other = fixture.get::<ConfigMap>("a").await.unwrap();
    assert_eq!(other.metadata.deletion_timestamp, None);
    fixture.release::<Pod>("held").await;
    fixture.until_gone().await;
}

/// Checks K9.
#[tokio::test]
async fn a_namespace_waits_for_finalizers_of_others() {
    let fixture = Fixture::running().await;
    let mut namespace: Namespace = fixture.namespace().await.unwrap();
    namespace.spec.finalizers.push("example.com/a".into());
    fixture
        .client
        .update_part(&namespace, "finalize")
        .await
        .unwrap();
    fixture.end().await;
    let emptied = fixture
        .until(|namespace| namespace.spec.finalizers == ["example.com/a"])
        .await;
    assert_eq!(emptied.status.phase, "Terminating");
    let mut released = fixture.namespace().await.unwrap();
    released.spec.finalizers.clear();
    fixture
        .client
        .update_part(&released, "finalize")
        .await
        .unwrap();
    fixture.until_gone().await;
}

#[tokio::test]
async fn the_content_of_a_recreated_namespace_is_kept() {
    let fixture = Fixture::running().await;
    fixture.client.create(&config_map("a")).await.unwrap();
    fixture.end().await;
    fixture.until_gone().await;
    fixture.create_namespace(NAMESPACE).await;
    fixture.client.create(&config_map("kept")).await.unwrap();
    // Once another namespace is deleted, the controller has also seen that this one is a new one.
    fixture.create_namespace("other").await;
    let none = Default::default();
    let other = Key::new("", "other");
    fixture
        .client
        .delete::<Namespace>(&other, none, None)
        .await
        .unwrap();
    fixture.until_missing("other").await;
    fixture.get::<ConfigMap>("kept").await.unwrap();
}

/// A deletion is one trace: what it writes continues that of the request that caused it.
#[tokio::test]
async fn all_writes_of_a_deletion_belong_to_the_trace_of_its_request() {
    let fixture = Fixture::running().await;
    let mut held = config_map("held");
    held.metadata.finalizers = vec!["example.com/held".into()];
    fixture.client.create(&held).await.unwrap();
    let root = Traceparent {
        trace_high: 7,
        trace_low: 8,
        span: 9,
        flags: 1,
    };
    let request = DeleteRequest {
        resource: "namespaces".into(),
        name: NAMESPACE.into(),
        trace: Some(TraceContext {
            parent: Some(root),
            ..TraceContext::default()
        }),
        ..DeleteRequest::default()
    };
    let mut objects = ObjectsClient::new(fixture.client.channel());
    objects.delete(request).await.unwrap();
    fixture
        .until(|namespace| {
            condition::is_true(&namespace.status.conditions, "NamespaceFinalizersRemaining")
        })
        .await;
    let key = Key::new(NAMESPACE, "held");
    let held = fixture.client.object("configmaps", &key).await.unwrap();
    let namespace = Key::new("", NAMESPACE);
    let reported = fixture.client.object("namespaces", &namespace).await;
    for object in [held, reported.unwrap()] {
        let cause = object.cause.unwrap();
        let parent = cause.traceparent.unwrap();
        assert_eq!((parent.trace_high, parent.trace_low), (7, 8), "{cause:?}");
        assert_eq!(cause.writer, "namespace-controller");
        assert!(cause.depth > 0);
    }
    fixture.release::<ConfigMap>("held").await;
    fixture.until_gone().await;
}
