//! Tests of the verb `create`.

use setpoint_gateway::registry::RequestContext;
use setpoint_proto::Reason;
use setpoint_proto::apps::Deployment;
use setpoint_proto::core::{
    ConfigMap, Namespace, Pod, PodSchedulingGate, Service, ServiceAccount, ServicePort,
};
use setpoint_store::contract::objects::{NAMESPACE, config_map};

use crate::gateway::{TestGateway, deployment, pod};

#[tokio::test]
async fn a_new_object_gets_an_identity_and_its_defaults() {
    let gateway = TestGateway::start().await;
    let web = gateway.create(&deployment("web")).await.unwrap();
    assert_eq!(web.metadata.namespace, NAMESPACE);
    assert_eq!(web.metadata.generation, 1);
    assert_eq!(web.metadata.uid.len(), 36);
    assert!(web.metadata.creation_timestamp.timestamp().is_some());
    assert_eq!(web.spec.replicas, Some(1));
    let read: Deployment = gateway.get("web").await.unwrap();
    assert_eq!(read, web);
}

#[tokio::test]
async fn a_name_that_exists_is_refused() {
    let gateway = TestGateway::start().await;
    gateway.create(&pod("web")).await.unwrap();
    let error = gateway.create(&pod("web")).await.unwrap_err();
    assert_eq!(error.reason, Reason::AlreadyExists);
    assert_eq!(error.message, r#"pods "web" already exists"#);
}

#[tokio::test]
async fn generated_names_differ() {
    let gateway = TestGateway::start().await;
    let mut unnamed = pod("");
    unnamed.metadata.generate_name = "web-".into();
    let first = gateway.create(&unnamed).await.unwrap().metadata.name;
    let second = gateway.create(&unnamed).await.unwrap().metadata.name;
    assert!(first.starts_with("web-") && first.len() == 9, "{first}");
    assert_ne!(first, second);
}

#[tokio::test]
async fn an_object_without_a_name_is_invalid() {
    let gateway = TestGateway::start().await;
    let error = gateway.create(&pod("")).await.unwrap_err();
    assert_eq!(error.reason, Reason::Invalid);
    assert!(
        error
            .message
            .contains("metadata.name: Required value: name or generateName is required")
    );
}

#[tokio::test]
async fn a_name_that_is_too_long_is_invalid() {
    let gateway = TestGateway::start().await;
    let error = gateway
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
async fn a_missing_namespace_is_not_found() {
    let gateway = TestGateway::start().await;
    let kind = setpoint_store::contract::objects::kind::<Pod>();
    let nowhere = setpoint_gateway::registry::Target::new(kind, "nowhere", "", "").unwrap();
    let created = gateway
        .registry
        .create(&RequestContext::default(), &nowhere, Box::new(pod("web")))
        .await;
    let error = created.unwrap_err();
    assert_eq!(error.reason, Reason::NotFound);
    assert_eq!(error.message, r#"namespaces "nowhere" not found"#);
}

#[tokio::test]
async fn a_new_namespace_is_found_with_a_stale_cache() {
    let gateway = TestGateway::start().await;
    gateway.store.hold();
    let mut namespace = Namespace::default();
    namespace.metadata.name = "fresh".into();
    gateway.create(&namespace).await.unwrap();
    let kind = setpoint_store::contract::objects::kind::<Pod>();
    let fresh = setpoint_gateway::registry::Target::new(kind, "fresh", "", "").unwrap();
    let mut account = ServiceAccount::default();
    account.metadata.name = "default".into();
    let accounts = setpoint_store::contract::objects::kind::<ServiceAccount>();
    let accounts = setpoint_gateway::registry::Target::new(accounts, "fresh", "", "").unwrap();
    gateway
        .registry
        .create(&RequestContext::default(), &accounts, Box::new(account))
        .await
        .unwrap();
    gateway
        .registry
        .create(&RequestContext::default(), &fresh, Box::new(pod("web")))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_dry_run_returns_the_object_and_stores_nothing() {
    let gateway = TestGateway::start().await;
    let dry = RequestContext::default().dry(true);
    let web = gateway.create_as(&dry, &deployment("web")).await.unwrap();
    assert_eq!(web.spec.replicas, Some(1));
    assert_eq!(
        gateway.get::<Deployment>("web").await.unwrap_err().reason,
        Reason::NotFound
    );
    gateway.create(&deployment("web")).await.unwrap();
    let error = gateway
        .create_as(&dry, &deployment("web"))
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::AlreadyExists);
}

#[tokio::test]
async fn the_cause_has_the_field_manager() {
    let gateway = TestGateway::start().await;
    let context = RequestContext::default().by("kubectl");
    let target = crate::gateway::target::<ConfigMap>("", "");
    let object = Box::new(config_map("a", "1"));
    let response = gateway
        .registry
        .create(&context, &target, object)
        .await
        .unwrap();
    assert_eq!(response.cause.unwrap().writer, "kubectl");
}

#[tokio::test]
async fn an_object_of_another_kind_is_a_bad_request() {
    let gateway = TestGateway::start().await;
    let target = crate::gateway::target::<Pod>("", "");
    let sent = Box::new(config_map("a", "1"));
    let error = gateway
        .registry
        .create(&RequestContext::default(), &target, sent)
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::BadRequest);
}

#[tokio::test]
async fn a_cluster_ip_is_assigned_and_cannot_be_reused() {
    let gateway = TestGateway::start().await;
    let mut service = Service::default();
    service.metadata.name = "a".into();
    service.spec.ports = vec![ServicePort {
        port: 80,
        ..Default::default()
    }];
    let first = gateway.create(&service).await.unwrap();
    assert!(
        first.spec.cluster_ip.starts_with("10.96."),
        "{}",
        first.spec.cluster_ip
    );
    service.metadata.name = "b".into();
    service.spec.cluster_ip = first.spec.cluster_ip.clone();
    gateway.get::<Service>("a").await.unwrap();
    let error = gateway.create(&service).await.unwrap_err();
    assert!(
        error.message.contains("provided IP is already allocated"),
        "{}",
        error.message
    );
}

/// Checks K7.
#[tokio::test]
async fn a_new_pod_with_scheduling_gates_has_a_condition() {
    let gateway = TestGateway::start().await;
    let mut gated = pod("web");
    gated.spec.scheduling_gates = vec![PodSchedulingGate {
        name: "a.io/later".into(),
    }];
    let gated = gateway.create(&gated).await.unwrap();
    let [condition] = gated.status.conditions.as_slice() else {
        panic!("{:?}", gated.status.conditions);
    };
    assert_eq!(condition.r#type, "PodScheduled");
    assert_eq!(condition.status, "False");
    assert_eq!(condition.reason, "SchedulingGated");
    let free = gateway.create(&pod("other")).await.unwrap();
    assert!(free.status.conditions.is_empty());
}

/// Checks K11.
#[tokio::test]
async fn a_negative_grace_period_defaults_to_one_second() {
    let gateway = TestGateway::start().await;
    let mut hasty = pod("web");
    hasty.spec.termination_grace_period_seconds = Some(-1);
    let hasty = gateway.create(&hasty).await.unwrap();
    assert_eq!(hasty.spec.termination_grace_period_seconds, Some(1));
}

/// Checks K18.
#[tokio::test]
async fn a_pod_must_name_existing_accounts_and_classes() {
    let gateway = TestGateway::start().await;
    let mut named = pod("web");
    named.spec.service_account_name = "robot".into();
    let error = gateway.create(&named).await.unwrap_err();
    assert_eq!(error.reason, Reason::Forbidden);
    assert_eq!(
        error.message,
        r#"pods "web" is forbidden: error looking up service account production/robot: serviceaccount "robot" not found"#
    );
    let mut account = ServiceAccount::default();
    account.metadata.name = "robot".into();
    gateway.create(&account).await.unwrap();
    gateway.create(&named).await.unwrap();

    let mut classed = pod("other");
    classed.spec.priority_class_name = "undefined".into();
    let error = gateway.create(&classed).await.unwrap_err();
    assert_eq!(
        error.message,
        r#"pods "other" is forbidden: no PriorityClass with name undefined was found"#
    );
    classed.spec.priority_class_name = "system-cluster-critical".into();
    let classed = gateway.create(&classed).await.unwrap();
    assert_eq!(classed.spec.priority, Some(2_000_000_000));

    let mut contained = pod("third");
    contained.spec.runtime_class_name = Some("gvisor".into());
    let error = gateway.create(&contained).await.unwrap_err();
    assert_eq!(
        error.message,
        r#"pods "third" is forbidden: pod rejected: RuntimeClass "gvisor" not found"#
    );
}
