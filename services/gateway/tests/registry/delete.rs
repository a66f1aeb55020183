//! How objects end.

use serde_json::json;
use setpoint_proto::Reason;
use setpoint_proto::core::{ConfigMap, Pod};
use setpoint_proto::meta::{DeleteOptions, Preconditions};
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_store::contract::objects::config_map;

use crate::world::{World, pod};

fn graced(seconds: i64) -> DeleteOptions {
    DeleteOptions {
        grace_period_seconds: Some(seconds),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_plain_object_goes_at_once() {
    let world = World::start().await;
    world.create(&config_map("a", "1")).await.unwrap();
    let deleted = world
        .delete::<ConfigMap>("a", DeleteOptions::default())
        .await
        .unwrap();
    assert!(deleted.gone);
    assert_eq!(
        world.get::<ConfigMap>("a").await.unwrap_err().reason,
        Reason::NotFound
    );
    let error = world
        .delete::<ConfigMap>("a", DeleteOptions::default())
        .await
        .err()
        .unwrap();
    assert_eq!(error.message, r#"configmaps "a" not found"#);
}

/// Checks N4 at the gateway: a bound Pod stays until its agent says that it has stopped.
#[tokio::test]
async fn a_bound_pod_stays_until_its_agent_lets_it_go() {
    let world = World::start().await;
    world.create(&pod("one")).await.unwrap();
    world.bind("one", "node-1").await.unwrap();
    let deleted = world
        .delete::<Pod>("one", DeleteOptions::default())
        .await
        .unwrap();
    assert!(!deleted.gone);
    let ending = world.get::<Pod>("one").await.unwrap();
    assert!(ending.metadata.deletion_timestamp.is_some());
    assert_eq!(ending.metadata.deletion_grace_period_seconds, Some(30));

    let again = world
        .delete::<Pod>("one", DeleteOptions::default())
        .await
        .unwrap();
    assert!(!again.gone);
    assert_eq!(
        again.response.revision.to_string(),
        ending.metadata.resource_version
    );

    assert!(world.delete::<Pod>("one", graced(0)).await.unwrap().gone);
    assert_eq!(
        world.get::<Pod>("one").await.unwrap_err().reason,
        Reason::NotFound
    );
}

#[tokio::test]
async fn a_pod_that_cannot_be_running_goes_at_once() {
    let world = World::start().await;
    world.create(&pod("unbound")).await.unwrap();
    assert!(
        world
            .delete::<Pod>("unbound", DeleteOptions::default())
            .await
            .unwrap()
            .gone
    );

    world.create(&pod("done")).await.unwrap();
    world.bind("done", "node-1").await.unwrap();
    let mut report = pod("done");
    report.status.phase = "Succeeded".into();
    world.update_part("status", &report).await.unwrap();
    assert!(
        world
            .delete::<Pod>("done", DeleteOptions::default())
            .await
            .unwrap()
            .gone
    );
}

#[tokio::test]
async fn a_finalizer_keeps_an_object_until_it_is_taken_off() {
    let world = World::start().await;
    let mut map = config_map("a", "1");
    map.metadata.finalizers = vec!["example.com/b".into()];
    world.create(&map).await.unwrap();
    assert!(
        !world
            .delete::<ConfigMap>("a", DeleteOptions::default())
            .await
            .unwrap()
            .gone
    );
    let mut ending = world.get::<ConfigMap>("a").await.unwrap();
    assert!(ending.metadata.deletion_timestamp.is_some());

    ending.metadata.finalizers.push("example.com/c".into());
    let error = world.update(&ending).await.unwrap_err();
    assert!(
        error
            .message
            .contains("no new finalizers can be added if the object is being deleted")
    );

    let off = json!({"metadata": {"finalizers": null}});
    world
        .patch::<ConfigMap>("a", Type::Merge, off)
        .await
        .unwrap();
    assert_eq!(
        world.get::<ConfigMap>("a").await.unwrap_err().reason,
        Reason::NotFound
    );
}

/// Checks I4 at the gateway: a deletion that means one object never hits its namesake.
#[tokio::test]
async fn a_precondition_protects_a_namesake() {
    let world = World::start().await;
    let map = world.create(&config_map("a", "1")).await.unwrap();
    let meaning = |uid: &str, revision: &str| DeleteOptions {
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
    let other = world
        .delete::<ConfigMap>("a", meaning("other", ""))
        .await
        .err()
        .unwrap();
    assert_eq!(other.reason, Reason::Conflict);
    assert!(
        other
            .message
            .contains("the UID in the precondition (other) does not match")
    );
    let old = world
        .delete::<ConfigMap>("a", meaning(uid, "1"))
        .await
        .err()
        .unwrap();
    assert!(
        old.message
            .contains("the ResourceVersion in the precondition (1) does not match")
    );
    assert!(
        world
            .delete::<ConfigMap>("a", meaning(uid, revision))
            .await
            .unwrap()
            .gone
    );
}

#[tokio::test]
async fn a_dry_run_deletes_nothing() {
    let world = World::start().await;
    world.create(&config_map("a", "1")).await.unwrap();
    let dry = DeleteOptions {
        dry_run: vec!["All".into()],
        ..Default::default()
    };
    assert!(world.delete::<ConfigMap>("a", dry).await.unwrap().gone);
    assert!(world.get::<ConfigMap>("a").await.is_ok());
}

#[tokio::test]
async fn the_cause_of_a_deletion_reaches_whoever_watches() {
    use futures::StreamExt as _;
    use setpoint_gateway::registry::{Filter, RequestContext, Start, WatchSpec};
    use setpoint_store::contract::objects::kind;

    let world = World::start().await;
    world.create(&config_map("a", "1")).await.unwrap();
    let spec = WatchSpec {
        filter: Filter::all(kind::<ConfigMap>(), ""),
        start: Start::Now,
        bookmarks: false,
    };
    let mut events = world
        .registry
        .watch(&RequestContext::default(), spec)
        .await
        .unwrap();
    let context = RequestContext::default().by("kubectl");
    let target = crate::world::target::<ConfigMap>("a", "");
    world
        .registry
        .delete(&context, &target, &DeleteOptions::default())
        .await
        .unwrap();
    let event = events.next().await.unwrap().unwrap();
    assert_eq!(event.r#type, setpoint_proto::EventType::Deleted);
    assert_eq!(event.object.cause().unwrap().writer, "kubectl");
}
