//! What becomes of a new object.

use setpoint_gateway::registry::RequestContext;
use setpoint_proto::Reason;
use setpoint_proto::apps::Deployment;
use setpoint_proto::core::{
    ConfigMap, Namespace, Pod, PodSchedulingGate, Service, ServiceAccount, ServicePort,
};
use setpoint_store::contract::objects::{NAMESPACE, config_map};

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
    let kind = setpoint_store::contract::objects::kind::<Pod>();
    let nowhere = setpoint_gateway::registry::Target::new(kind, "nowhere", "", "").unwrap();
    let created = world
        .registry
        .create(&RequestContext::default(), &nowhere, Box::new(pod("web")))
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
    let kind = setpoint_store::contract::objects::kind::<Pod>();
    let fresh = setpoint_gateway::registry::Target::new(kind, "fresh", "", "").unwrap();
    world
        .registry
        .create(&RequestContext::default(), &fresh, Box::new(pod("web")))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_dry_run_answers_and_stores_nothing() {
    let world = World::start().await;
    let dry = RequestContext::default().dry(true);
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
    let context = RequestContext::default().by("kubectl");
    let target = crate::world::target::<ConfigMap>("", "");
    let object = Box::new(config_map("a", "1"));
    let response = world
        .registry
        .create(&context, &target, object)
        .await
        .unwrap();
    assert_eq!(response.cause.unwrap().writer, "kubectl");
}

#[tokio::test]
async fn an_object_of_another_kind_is_refused() {
    let world = World::start().await;
    let target = crate::world::target::<Pod>("", "");
    let sent = Box::new(config_map("a", "1"));
    let error = world
        .registry
        .create(&RequestContext::default(), &target, sent)
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

/// Checks K7.
#[tokio::test]
async fn a_gated_pod_says_from_the_start_why_nobody_schedules_it() {
    let world = World::start().await;
    let mut gated = pod("web");
    gated.spec.scheduling_gates = vec![PodSchedulingGate {
        name: "a.io/later".into(),
    }];
    let gated = world.create(&gated).await.unwrap();
    let [condition] = gated.status.conditions.as_slice() else {
        panic!("{:?}", gated.status.conditions);
    };
    assert_eq!(condition.r#type, "PodScheduled");
    assert_eq!(condition.status, "False");
    assert_eq!(condition.reason, "SchedulingGated");
    let free = world.create(&pod("other")).await.unwrap();
    assert!(free.status.conditions.is_empty());
}

/// Checks K11.
#[tokio::test]
async fn a_negative_grace_is_a_second() {
    let world = World::start().await;
    let mut hasty = pod("web");
    hasty.spec.termination_grace_period_seconds = Some(-1);
    let hasty = world.create(&hasty).await.unwrap();
    assert_eq!(hasty.spec.termination_grace_period_seconds, Some(1));
}

/// Checks K18.
#[tokio::test]
async fn a_pod_cannot_name_what_is_not_there() {
    let world = World::start().await;
    let mut named = pod("web");
    named.spec.service_account_name = "robot".into();
    let error = world.create(&named).await.unwrap_err();
    assert_eq!(error.reason, Reason::Forbidden);
    assert_eq!(
        error.message,
        r#"pods "web" is forbidden: error looking up service account production/robot: serviceaccount "robot" not found"#
    );
    let mut account = ServiceAccount::default();
    account.metadata.name = "robot".into();
    world.create(&account).await.unwrap();
    world.create(&named).await.unwrap();

    let mut classed = pod("other");
    classed.spec.priority_class_name = "nobody-defined-this".into();
    let error = world.create(&classed).await.unwrap_err();
    assert_eq!(
        error.message,
        r#"pods "other" is forbidden: no PriorityClass with name nobody-defined-this was found"#
    );
    classed.spec.priority_class_name = "system-cluster-critical".into();
    let classed = world.create(&classed).await.unwrap();
    assert_eq!(classed.spec.priority, Some(2_000_000_000));

    let mut contained = pod("third");
    contained.spec.runtime_class_name = Some("gvisor".into());
    let error = world.create(&contained).await.unwrap_err();
    assert_eq!(
        error.message,
        r#"pods "third" is forbidden: pod rejected: RuntimeClass "gvisor" not found"#
    );
}
