//! What the gateway does by itself: collects what owners leave behind, empties namespaces, creates the usual ones.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use setpoint_gateway::registry::{
    AtLeast, Filter, ListParams, RequestContext, RevisionMatch, Target,
};
use setpoint_model::condition;
use setpoint_proto::Reason;
use setpoint_proto::apps::{Deployment, ReplicaSet};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::{ConfigMap, Event, Namespace, Pod};
use setpoint_proto::meta::DeleteOptions;
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_store::contract::objects::{NAMESPACE, config_map, kind};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::world::{World, deployment, pod, replica_set};

/// Longer than any test.
const HOUR: Duration = Duration::from_secs(3600);

pub async fn kept() -> (World, DropGuard) {
    kept_with(HOUR).await
}

async fn kept_with(event_ttl: Duration) -> (World, DropGuard) {
    let world = World::start().await;
    let stop = CancellationToken::new();
    tokio::spawn(
        world
            .registry
            .clone()
            .run_background(event_ttl, stop.clone(), |_| |_| ()),
    );
    (world, stop.drop_guard())
}

pub fn policy(policy: &str) -> DeleteOptions {
    DeleteOptions {
        propagation_policy: Some(policy.into()),
        ..Default::default()
    }
}

async fn family(world: &World) {
    let web = world.create(&deployment("web")).await.unwrap();
    let set = world.create(&replica_set("web-1", &web)).await.unwrap();
    let mut one = pod("web-1-a");
    one.metadata.owner_references = replica_set("x", &web).metadata.owner_references;
    let owner = &mut one.metadata.owner_references[0];
    owner.kind = "ReplicaSet".into();
    owner.name = "web-1".into();
    owner.uid = set.metadata.uid;
    world.create(&one).await.unwrap();
}

#[tokio::test]
async fn what_a_deployment_owns_goes_with_it() {
    let (world, _house) = kept().await;
    family(&world).await;
    assert!(
        world
            .delete::<Deployment>("web", policy("Background"))
            .await
            .unwrap()
            .gone
    );
    world.gone::<ReplicaSet>("web-1").await;
    world.gone::<Pod>("web-1-a").await;
}

#[tokio::test]
async fn what_was_left_behind_before_the_start_goes_too() {
    let world = World::start().await;
    family(&world).await;
    world
        .delete::<Deployment>("web", DeleteOptions::default())
        .await
        .unwrap();
    let stop = CancellationToken::new();
    let registry = world.registry.clone();
    tokio::spawn(registry.run_background(HOUR, stop.clone(), |_| |_| ()));
    world.gone::<Pod>("web-1-a").await;
    stop.cancel();
}

#[tokio::test]
async fn orphans_are_set_free_and_stay() {
    let (world, _house) = kept().await;
    family(&world).await;
    assert!(
        !world
            .delete::<Deployment>("web", policy("Orphan"))
            .await
            .unwrap()
            .gone
    );
    world.gone::<Deployment>("web").await;
    let set = world.get::<ReplicaSet>("web-1").await.unwrap();
    assert!(set.metadata.owner_references.is_empty());
    assert!(world.get::<Pod>("web-1-a").await.is_ok());
}

#[tokio::test]
async fn in_the_foreground_the_owner_goes_last() {
    let (world, _house) = kept().await;
    family(&world).await;
    assert!(
        !world
            .delete::<Deployment>("web", policy("Foreground"))
            .await
            .unwrap()
            .gone
    );
    world.gone::<Deployment>("web").await;
    assert_eq!(
        world.get::<ReplicaSet>("web-1").await.unwrap_err().reason,
        Reason::NotFound
    );
    assert_eq!(
        world.get::<Pod>("web-1-a").await.unwrap_err().reason,
        Reason::NotFound
    );
}

#[tokio::test]
async fn a_namespace_takes_its_content_along() {
    let (world, _house) = kept().await;
    world.create(&config_map("a", "1")).await.unwrap();
    world.create(&pod("one")).await.unwrap();
    assert!(
        !world
            .delete::<Namespace>(NAMESPACE, DeleteOptions::default())
            .await
            .unwrap()
            .gone
    );
    world.gone::<Namespace>(NAMESPACE).await;
    assert_eq!(
        world.get::<ConfigMap>("a").await.unwrap_err().reason,
        Reason::NotFound
    );
}

/// Checks K9: Pods go first, and the conditions say what the deletion waits for.
#[tokio::test]
async fn a_namespace_deletes_its_pods_before_everything_else() {
    let (world, _house) = kept().await;
    let mut held = pod("held");
    held.metadata.finalizers = vec!["example.com/held".into()];
    world.create(&held).await.unwrap();
    world.create(&config_map("a", "1")).await.unwrap();
    world
        .delete::<Namespace>(NAMESPACE, DeleteOptions::default())
        .await
        .unwrap();
    let told = |namespace: &Namespace| {
        condition::is_true(&namespace.status.conditions, "NamespaceContentRemaining")
    };
    let ending = world.seen(told).await;
    let message = |kind: &str| {
        let said = condition::get(&ending.status.conditions, kind).unwrap();
        (said.status.clone(), said.message.clone())
    };
    assert_eq!(
        message("NamespaceContentRemaining"),
        (
            "True".into(),
            "Some resources are remaining: pods. has 1 resource instances".into()
        )
    );
    assert_eq!(
        message("NamespaceFinalizersRemaining").1,
        "Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances"
    );
    assert_eq!(message("NamespaceDeletionContentFailure").0, "False");
    let other = world.get::<ConfigMap>("a").await.unwrap();
    assert_eq!(other.metadata.deletion_timestamp, None);

    let off = json!({"metadata": {"finalizers": null}});
    world.patch::<Pod>("held", Type::Merge, off).await.unwrap();
    world.gone::<Namespace>(NAMESPACE).await;
}

#[tokio::test]
async fn a_namespace_of_the_same_name_is_another_and_keeps_its_content() {
    let (world, _house) = kept().await;
    let former = world.get::<Namespace>(NAMESPACE).await.unwrap();
    world.create(&config_map("a", "1")).await.unwrap();
    world
        .delete::<Namespace>(NAMESPACE, DeleteOptions::default())
        .await
        .unwrap();
    world.gone::<Namespace>(NAMESPACE).await;
    let mut next = Namespace::default();
    next.metadata.name = former.metadata.name;
    world.create(&next).await.unwrap();
    world.create(&config_map("kept", "1")).await.unwrap();
    family(&world).await;
    // A deletion in it is what the collector looked into the former one for. What it deletes next, it deletes after that.
    world
        .delete::<Deployment>("web", policy("Background"))
        .await
        .unwrap();
    world.gone::<Pod>("web-1-a").await;
    assert!(world.get::<ConfigMap>("kept").await.is_ok());
}

#[tokio::test]
async fn a_namespace_that_ends_takes_nothing_new() {
    let world = World::start().await;
    world
        .delete::<Namespace>(NAMESPACE, DeleteOptions::default())
        .await
        .unwrap();
    let ending = world.get::<Namespace>(NAMESPACE).await.unwrap();
    assert_eq!(ending.status.phase, "Terminating");
    let error = world.create(&config_map("a", "1")).await.unwrap_err();
    assert_eq!(error.reason, Reason::Forbidden);
    assert_eq!(
        error.message,
        r#"configmaps "a" is forbidden: unable to create new content in namespace production because it is being terminated"#
    );
    assert_eq!(error.causes()[0].reason, "NamespaceTerminating");
}

#[tokio::test]
async fn the_usual_namespaces_are_created_and_stay() {
    let (world, _house) = kept().await;
    for name in ["default", "kube-system", "setpoint-system"] {
        world.there::<Namespace>(name).await;
        let error = world
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

/// Checks F30: the time of the last write counts, and not what the Event says.
#[tokio::test]
async fn an_event_ends_a_while_after_it_was_last_written_whatever_it_claims() {
    let (world, _house) = kept_with(Duration::from_millis(200)).await;
    let event = |name: &str, told: &str| {
        let mut event = Event::default();
        event.metadata.namespace = NAMESPACE.into();
        event.metadata.name = name.into();
        event.involved_object.namespace = NAMESPACE.into();
        event.last_timestamp = told.parse::<Timestamp>().unwrap().into();
        event
    };
    for (name, told) in [
        ("old", "1999-01-01T00:00:00Z"),
        ("eternal", "2999-01-01T00:00:00Z"),
    ] {
        world.create(&event(name, told)).await.unwrap();
        world.gone::<Event>(name).await;
    }
}

/// Checks F41: this gateway's clock may be far ahead of that of a replica, which is alive all the same.
#[tokio::test]
async fn a_replica_is_not_gone_because_its_clock_is_slow() {
    let (world, _house) = kept_with(Duration::from_millis(200)).await;
    let mut namespace = Namespace::default();
    namespace.metadata.name = "setpoint-replicas".into();
    world.create(&namespace).await.unwrap();
    let target = Target::new(kind::<Lease>(), "setpoint-replicas", "", "").unwrap();
    let mut lease = Lease::default();
    lease.metadata.name = "agent-0".into();
    lease.spec.holder_identity = Some("agent-0".into());
    lease.spec.lease_duration_seconds = Some(40);
    let long_ago = Timestamp::now() - Duration::from_secs(86_400);
    lease.spec.renew_time = Some(long_ago.into());
    let context = RequestContext::default();
    let created = world
        .registry
        .create(&context, &target, Box::new(lease))
        .await;
    created.unwrap();
    // Expiry has looked at the Leases by the time that it has forgotten this.
    let mut event = Event::default();
    event.metadata.name = "old".into();
    event.involved_object.namespace = NAMESPACE.into();
    world.create(&event).await.unwrap();
    world.gone::<Event>("old").await;
    let target = Target::new(kind::<Lease>(), "setpoint-replicas", "agent-0", "").unwrap();
    let there = world.registry.get(&context, &target, AtLeast::Newest).await;
    assert!(there.is_ok());
}

/// Checks F26.
#[tokio::test]
async fn nobody_deletes_all_namespaces_at_once() {
    let world = World::start().await;
    let params = ListParams {
        filter: Filter::all(kind::<Namespace>(), ""),
        limit: 0,
        continue_token: String::new(),
        at: RevisionMatch::NotOlderThan(AtLeast::Newest),
    };
    let deleted = world
        .registry
        .delete_collection(
            &RequestContext::default(),
            &params,
            &DeleteOptions::default(),
        )
        .await;
    let error = deleted.unwrap_err();
    assert_eq!(error.reason, Reason::MethodNotAllowed);
    assert!(world.get::<Namespace>(NAMESPACE).await.is_ok());
}

/// Checks K9: the subresource is a later issue's, and says so cleanly.
#[tokio::test]
async fn a_namespace_has_no_finalize() {
    let error = Target::new(kind::<Namespace>(), "", NAMESPACE, "finalize").unwrap_err();
    assert_eq!(error.reason, Reason::NotFound);
}
