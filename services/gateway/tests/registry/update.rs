//! What becomes of an object that is changed as a whole.

use setpoint_gateway::registry::RequestContext;
use setpoint_proto::Reason;
use setpoint_proto::apps::Deployment;
use setpoint_proto::core::{ConfigMap, Pod};
use setpoint_store::contract::objects::config_map;

use crate::world::{World, deployment, pod, target};

#[tokio::test]
async fn a_change_of_intent_is_a_new_generation() {
    let world = World::start().await;
    let mut web = world.create(&deployment("web")).await.unwrap();
    web.spec.replicas = Some(3);
    let web = world.update(&web).await.unwrap();
    assert_eq!(web.metadata.generation, 2);
    let mut labelled = web.clone();
    labelled.metadata.labels.insert("a".into(), "b".into());
    assert_eq!(
        world.update(&labelled).await.unwrap().metadata.generation,
        2
    );
}

#[tokio::test]
async fn an_update_that_changes_nothing_writes_nothing() {
    let world = World::start().await;
    let web = world.create(&deployment("web")).await.unwrap();
    let again = world.update(&web).await.unwrap();
    assert_eq!(
        again.metadata.resource_version,
        web.metadata.resource_version
    );
}

#[tokio::test]
async fn a_stale_revision_is_a_conflict() {
    let world = World::start().await;
    let old = world.create(&deployment("web")).await.unwrap();
    let mut new = old.clone();
    new.spec.replicas = Some(2);
    world.update(&new).await.unwrap();
    let error = world.update(&old).await.unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
    assert_eq!(
        error.message,
        r#"Operation cannot be fulfilled on deployments.apps "web": the object has been modified; please apply your changes to the latest version and try again"#
    );
}

#[tokio::test]
async fn a_stale_cache_is_no_conflict() {
    let world = World::start().await;
    let mut map = world.create(&config_map("a", "1")).await.unwrap();
    world.get::<ConfigMap>("a").await.unwrap();
    world.store.hold();
    for value in ["2", "3"] {
        map.data.insert("value".into(), value.into());
        map = world.update(&map).await.unwrap();
    }
    assert_eq!(map.data["value"], "3");
}

#[tokio::test]
async fn an_update_without_a_revision_applies_to_whatever_is_there() {
    let world = World::start().await;
    world.create(&config_map("a", "1")).await.unwrap();
    world.get::<ConfigMap>("a").await.unwrap();
    world.store.hold();
    let changed = world.update(&config_map("a", "2")).await.unwrap();
    let again = world.update(&config_map("a", "3")).await.unwrap();
    assert!(again.metadata.resource_version > changed.metadata.resource_version);
    assert_eq!(again.data["value"], "3");
}

#[tokio::test]
async fn many_writers_without_revisions_all_get_their_turn() {
    let world = World::start().await;
    world.create(&config_map("a", "0")).await.unwrap();
    let writes = (1..=8).map(|n| {
        let world = &world;
        async move { world.update(&config_map("a", &n.to_string())).await }
    });
    let outcomes = futures::future::join_all(writes).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

#[tokio::test]
async fn an_update_cannot_take_what_is_not_its_to_take() {
    let world = World::start().await;
    let web = world.create(&deployment("web")).await.unwrap();
    let mut sent = web.clone();
    sent.status.replicas = 7;
    sent.metadata.generation = 40;
    sent.metadata.creation_timestamp = Default::default();
    assert_eq!(world.update(&sent).await.unwrap(), web);
    sent.metadata.deletion_timestamp = Some(Default::default());
    let error = world.update(&sent).await.unwrap_err();
    assert_eq!(error.reason, Reason::Invalid);
    sent.metadata.uid = "another".into();
    let error = world.update(&sent).await.unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
    assert!(
        error
            .message
            .contains("Precondition failed: UID in precondition: another")
    );
}

#[tokio::test]
async fn selectors_and_most_of_a_pod_are_for_life() {
    let world = World::start().await;
    let mut web = world.create(&deployment("web")).await.unwrap();
    web.spec.selector = deployment("other").spec.selector;
    web.spec.template.metadata.labels = deployment("other").spec.template.metadata.labels;
    let error = world.update(&web).await.unwrap_err();
    assert_eq!(error.reason, Reason::Invalid);
    assert!(
        error.message.contains("field is immutable"),
        "{}",
        error.message
    );

    let mut one = world.create(&pod("one")).await.unwrap();
    one.spec.containers[0].image = "nginx:1.26".into();
    let mut one = world.update(&one).await.unwrap();
    assert_eq!(one.metadata.generation, 2);
    one.spec.containers[0].command = vec!["sh".into()];
    let error = world.update(&one).await.unwrap_err();
    assert!(error.message.starts_with(
        r#"Pod "one" is invalid: spec: Forbidden: pod updates may not change fields"#
    ));
}

#[tokio::test]
async fn what_is_not_there_cannot_be_updated() {
    let world = World::start().await;
    let error = world.update(&deployment("web")).await.unwrap_err();
    assert_eq!(error.reason, Reason::NotFound);
    assert_eq!(error.message, r#"deployments.apps "web" not found"#);
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let world = World::start().await;
    let mut web = world.create(&deployment("web")).await.unwrap();
    web.spec.replicas = Some(9);
    let dry = RequestContext::default().dry(true);
    let response = world
        .registry
        .update(&dry, &target::<Deployment>("web", ""), Box::new(web))
        .await;
    let answered: Deployment = crate::world::typed(response.unwrap()).unwrap();
    assert_eq!(answered.spec.replicas, Some(9));
    assert_eq!(
        world.get::<Deployment>("web").await.unwrap().spec.replicas,
        Some(1)
    );
}

#[tokio::test]
async fn a_binding_is_not_updated() {
    let world = World::start().await;
    world.create(&pod("one")).await.unwrap();
    let error = world.update_part("binding", &pod("one")).await.unwrap_err();
    assert_eq!(error.reason, Reason::MethodNotAllowed);
    assert!(world.get::<Pod>("one").await.is_ok());
}
