//! What becomes of a new object.

use setpoint_gateway::registry::Call;
use setpoint_proto::Reason;
use setpoint_proto::apps::Deployment;
use setpoint_proto::core::{ConfigMap, Namespace, Pod, Service, ServicePort};
use setpoint_testkit::objects::{NAMESPACE, config_map};

use crate::world::{World, deployment, pod};

#[tokio::test]
async fn a_new_object_gets_an_identity_and_its_defaults() {
    let world = World::start().await;
    let web = world.create(&deployment("web")).await.unwrap();
    assert_eq!(web.metadata.namespace, NAMESPACE);
    assert_eq!(web.metadata.generation, 1);
    assert_eq!(web.metadata.uid.len(), 36);
    assert!(web.metadata.creation_timestamp.timestamp().is_some());
    assert_eq!(web.spec.replicas, Some(1));
    let read: Deployment = world.get("web").await.unwrap();
    assert_eq!(read, web);
}

#[tokio::test]
async fn a_name_is_taken_once() {
    let world = World::start().await;
    world.create(&pod("web")).await.unwrap();
    let error = world.create(&pod("web")).await.unwrap_err();
    assert_eq!(error.reason, Reason::AlreadyExists);
    assert_eq!(error.message, r#"pods "web" already exists"#);
}

#[tokio::test]
async fn generated_names_differ() {
    let world = World::start().await;
    let mut unnamed = pod("");
    unnamed.metadata.generate_name = "web-".into();
    let first = world.create(&unnamed).await.unwrap().metadata.name;
    let second = world.create(&unnamed).await.unwrap().metadata.name;
    assert!(first.starts_with("web-") && first.len() == 9, "{first}");
    assert_ne!(first, second);
}

#[tokio::test]
async fn an_object_without_any_name_is_refused() {
    let world = World::start().await;
    let error = world.create(&pod("")).await.unwrap_err();
    assert_eq!(error.reason, Reason::Invalid);
    assert!(
        error
            .message
            .contains("metadata.name: Required value: name or generateName is required")
    );
}

#[tokio::test]
async fn a_name_that_is_too_long_is_refused() {
    let world = World::start().await;
    let error = world
        .create(&deployment(&"x".repeat(254)))
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::Invalid);
    assert!(
        error
            .message
            .contains("must be no more than 253 characters"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn a_namespace_must_be_there() {
    let world = World::start().await;
    let kind = setpoint_testkit::objects::kind::<Pod>();
    let nowhere = setpoint_gateway::registry::Target::new(kind, "nowhere", "", "").unwrap();
    let created = world
        .registry
        .create(&Call::default(), &nowhere, Box::new(pod("web")))
        .await;
    let error = created.unwrap_err();
    assert_eq!(error.reason, Reason::NotFound);
    assert_eq!(error.message, r#"namespaces "nowhere" not found"#);
}

#[tokio::test]
async fn a_namespace_is_found_even_if_the_cache_has_not_heard_of_it() {
    let world = World::start().await;
    world.store.hold();
    let mut namespace = Namespace::default();
    namespace.metadata.name = "fresh".into();
    world.create(&namespace).await.unwrap();
    let kind = setpoint_testkit::objects::kind::<Pod>();
    let fresh = setpoint_gateway::registry::Target::new(kind, "fresh", "", "").unwrap();
    world
        .registry
        .create(&Call::default(), &fresh, Box::new(pod("web")))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_dry_run_answers_and_stores_nothing() {
    let world = World::start().await;
    let dry = Call::default().dry(true);
    let web = world.create_as(&dry, &deployment("web")).await.unwrap();
    assert_eq!(web.spec.replicas, Some(1));
    assert_eq!(
        world.get::<Deployment>("web").await.unwrap_err().reason,
        Reason::NotFound
    );
    world.create(&deployment("web")).await.unwrap();
    let error = world.create_as(&dry, &deployment("web")).await.unwrap_err();
    assert_eq!(error.reason, Reason::AlreadyExists);
}

#[tokio::test]
async fn the_writer_stands_in_the_cause() {
    let world = World::start().await;
    let call = Call::default().by("kubectl");
    let target = crate::world::target::<ConfigMap>("", "");
    let object = Box::new(config_map("a", "1"));
    let answer = world.registry.create(&call, &target, object).await.unwrap();
    assert_eq!(answer.cause.unwrap().writer, "kubectl");
}

#[tokio::test]
async fn an_object_of_another_kind_is_refused() {
    let world = World::start().await;
    let target = crate::world::target::<Pod>("", "");
    let sent = Box::new(config_map("a", "1"));
    let error = world
        .registry
        .create(&Call::default(), &target, sent)
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::BadRequest);
}

#[tokio::test]
async fn services_get_addresses_of_their_own_and_cannot_take_each_others() {
    let world = World::start().await;
    let mut service = Service::default();
    service.metadata.name = "a".into();
    service.spec.ports = vec![ServicePort {
        port: 80,
        ..Default::default()
    }];
    let first = world.create(&service).await.unwrap();
    assert!(
        first.spec.cluster_ip.starts_with("10.96."),
        "{}",
        first.spec.cluster_ip
    );
    service.metadata.name = "b".into();
    service.spec.cluster_ip = first.spec.cluster_ip.clone();
    world.get::<Service>("a").await.unwrap();
    let error = world.create(&service).await.unwrap_err();
    assert!(
        error.message.contains("provided IP is already allocated"),
        "{}",
        error.message
    );
}
