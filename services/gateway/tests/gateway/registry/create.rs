//! Tests of the verb `create`.

use setpoint_gateway::registry::RequestContext;
use setpoint_proto::Reason;
use setpoint_proto::apps::Deployment;
use setpoint_proto::batch::Job;
use setpoint_proto::core::{
    ConfigMap, Namespace, Pod, PodSchedulingGate, ResourceQuota, Service, ServiceAccount,
    ServicePort,
};
use setpoint_proto::meta::Quantity;
use setpoint_proto::scheduling::PriorityClass;
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_store::contract::objects::{NAMESPACE, config_map, kind};

use crate::registry::gateway::{TestGateway, container, deployment, pod, target, typed};

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
        .create(&RequestContext::of_server(), &nowhere, Box::new(pod("web")))
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
        .create(&RequestContext::of_server(), &accounts, Box::new(account))
        .await
        .unwrap();
    gateway
        .registry
        .create(&RequestContext::of_server(), &fresh, Box::new(pod("web")))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_dry_run_returns_the_object_and_stores_nothing() {
    let gateway = TestGateway::start().await;
    let dry = RequestContext::of_server().dry(true);
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
    let context = RequestContext::of_server().by("kubectl");
    let target = crate::registry::gateway::target::<ConfigMap>("", "");
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
    let target = crate::registry::gateway::target::<Pod>("", "");
    let sent = Box::new(config_map("a", "1"));
    let error = gateway
        .registry
        .create(&RequestContext::of_server(), &target, sent)
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

/// Checks U4: a null quantity is zero.
#[tokio::test]
async fn a_null_quantity_is_zero() {
    let gateway = TestGateway::start().await;
    let context = RequestContext::of_server();
    let quota = kind::<ResourceQuota>()
        .from_json(br#"{"metadata": {"name": "nul"}, "spec": {"hard": {"limits.cpu": null}}}"#);
    let target = target::<ResourceQuota>("", "");
    let created = gateway.registry.create(&context, &target, quota.unwrap());
    let quota: ResourceQuota = typed(created.await.unwrap()).unwrap();
    assert_eq!(quota.spec.hard["limits.cpu"], Quantity::new("0"));

    let pod = kind::<Pod>().from_json(
        br#"{"metadata": {"name": "nul"}, "spec": {"containers": [{"name": "c", "image": "i",
            "resources": {"requests": {"memory": "64Mi", "cpu": null}}}]}}"#,
    );
    let target = crate::registry::gateway::target::<Pod>("", "");
    let created = gateway.registry.create(&context, &target, pod.unwrap());
    let pod: Pod = typed(created.await.unwrap()).unwrap();
    let requests = &pod.spec.containers[0].resources.requests;
    assert_eq!(requests["cpu"], Quantity::new("0"));
}

/// The response of the create of a Job has the labels that every later read shows.
#[tokio::test]
async fn a_new_job_has_the_labels_of_its_template() {
    let gateway = TestGateway::start().await;
    let mut job = Job::default();
    job.metadata.name = "lab".into();
    job.spec.template.spec.containers = vec![container()];
    job.spec.template.spec.restart_policy = "Never".into();
    let created = gateway.create(&job).await.unwrap();
    assert_eq!(created.metadata.labels.len(), 4);
    assert_eq!(created.metadata.labels["job-name"], "lab");
    let stored: Job = gateway.get("lab").await.unwrap();
    assert_eq!(stored, created);
}

/// Checks DG13: a Service for which no node port is left is refused, and none is created with fewer.
#[tokio::test]
async fn a_service_without_free_node_ports_is_refused() {
    let gateway = TestGateway::start().await;
    let service = |name: &str, ports: i32| {
        let mut service = Service::default();
        service.metadata.name = name.into();
        service.spec.r#type = "NodePort".into();
        let port = |port: i32| ServicePort {
            name: format!("p{port}"),
            port,
            ..Default::default()
        };
        service.spec.ports = (1..=ports).map(port).collect();
        service
    };
    // 2768 ports: 13 Services with 200 leave 168.
    for n in 0..13 {
        let name = format!("s{n}");
        gateway.create(&service(&name, 200)).await.unwrap();
    }
    let full = "Internal error occurred: failed to allocate a nodePort: range is full";
    let error = gateway.create(&service("more", 200)).await.unwrap_err();
    assert_eq!((error.code(), error.message.as_str()), (500, full));
    let missing = gateway.get::<Service>("more").await.unwrap_err();
    assert_eq!(missing.reason, Reason::NotFound);
    let last = gateway.create(&service("last", 168)).await.unwrap();
    assert!(last.spec.ports.iter().all(|port| port.node_port > 0));
    let mut plain = service("plain", 1);
    plain.spec.r#type = "ClusterIP".into();
    let mut plain = gateway.create(&plain).await.unwrap();
    plain.spec.r#type = "NodePort".into();
    let error = gateway.update(&plain).await.unwrap_err();
    assert_eq!(error.message, full);
}

/// Checks E4: admission and validation come before the check of the resourceVersion, which a dry run leaves out.
#[tokio::test]
async fn the_resource_version_of_a_new_object_is_checked_last() {
    let gateway = TestGateway::start().await;
    let mut web = pod("web");
    web.metadata.resource_version = "1".into();
    let mut classed = web.clone();
    classed.spec.priority_class_name = "undefined".into();
    let error = gateway.create(&classed).await.unwrap_err();
    assert_eq!(error.reason, Reason::Forbidden);
    let mut invalid = web.clone();
    invalid.spec.containers[0].image.clear();
    let error = gateway.create(&invalid).await.unwrap_err();
    assert_eq!(error.reason, Reason::Invalid);
    let error = gateway.create(&web).await.unwrap_err();
    assert_eq!(error.reason, Reason::BadRequest);
    assert_eq!(
        error.message,
        "resourceVersion should not be set on objects to be created"
    );
    let dry = RequestContext::of_server().dry(true);
    let created = gateway.create_as(&dry, &web).await.unwrap();
    assert_ne!(created.metadata.resource_version, "1");
}

/// Checks U1: who may create a Pod may not choose its priority.
#[tokio::test]
async fn a_pod_has_the_priority_of_its_class_and_no_other() {
    let gateway = TestGateway::start().await;
    let computed = "must not be provided in pod spec; priority admission controller computed";
    let mut first = pod("web");
    first.spec.priority = Some(i32::MAX);
    let error = gateway.create(&first).await.unwrap_err();
    assert_eq!(error.reason, Reason::Forbidden);
    assert_eq!(
        error.message,
        format!(
            "pods \"web\" is forbidden: the integer value of priority (2147483647) {computed} 0 from the given PriorityClass name"
        )
    );
    let mut polite = pod("web");
    polite.spec.preemption_policy = Some("Never".into());
    let error = gateway.create(&polite).await.unwrap_err();
    assert_eq!(
        error.message,
        format!(
            "pods \"web\" is forbidden: the string value of PreemptionPolicy (Never) {computed} PreemptLowerPriority \
            from the given PriorityClass name"
        )
    );
    let given = |pod: &Pod| (pod.spec.priority, pod.spec.preemption_policy.clone());
    let unclassified = (Some(0), Some("PreemptLowerPriority".to_owned()));
    let web = gateway.create(&pod("web")).await.unwrap();
    assert_eq!(given(&web), unclassified);
    assert_eq!(web.spec.priority_class_name, "");

    let mut class = PriorityClass {
        value: 7,
        global_default: true,
        preemption_policy: Some("Never".into()),
        ..Default::default()
    };
    class.metadata.name = "modest".into();
    gateway.create(&class).await.unwrap();
    gateway.there::<PriorityClass>("modest").await;
    let other = gateway.create(&pod("other")).await.unwrap();
    assert_eq!(given(&other), (Some(7), Some("Never".to_owned())));
    assert_eq!(other.spec.priority_class_name, "modest");
}

/// Checks U1: a manifest without a priority replaces a Pod that has one, and one with another priority does not.
#[tokio::test]
async fn an_update_keeps_the_priority_of_a_pod() {
    let gateway = TestGateway::start().await;
    let mut web = gateway.create(&pod("web")).await.unwrap();
    web.spec.priority = None;
    web.spec.preemption_policy = None;
    let replaced = gateway.update(&web).await.unwrap();
    assert_eq!(replaced.spec.priority, Some(0));
    let policy = replaced.spec.preemption_policy.as_deref();
    assert_eq!(policy, Some("PreemptLowerPriority"));
    web.metadata.resource_version.clear();
    web.spec.priority = Some(1);
    let error = gateway.update(&web).await.unwrap_err();
    assert_eq!(error.reason, Reason::Invalid);
    let body = serde_json::json!({"spec": {"priority": 1}});
    let patched = gateway.patch::<Pod>("web", Type::Merge, body).await;
    assert_eq!(patched.unwrap_err().reason, Reason::Invalid);
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
