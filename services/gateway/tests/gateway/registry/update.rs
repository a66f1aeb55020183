//! Tests of the verb `update`.

use setpoint_codec::Object;
use setpoint_gateway::registry::RequestContext;
use setpoint_proto::apps::Deployment;
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::{ConfigMap, Endpoints, Event, LimitRange, Pod, Service, ServicePort};
use setpoint_proto::node::RuntimeClass;
use setpoint_proto::policy::PodDisruptionBudget;
use setpoint_proto::rbac::{ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef};
use setpoint_proto::{Reason, Resource};
use setpoint_store::contract::objects::{NAMESPACE, config_map};

use crate::registry::gateway::{TestGateway, deployment, pod, target, typed};

#[tokio::test]
async fn a_change_of_the_spec_increments_the_generation() {
    let gateway = TestGateway::start().await;
    let mut web = gateway.create(&deployment("web")).await.unwrap();
    web.spec.replicas = Some(3);
    let web = gateway.update(&web).await.unwrap();
    assert_eq!(web.metadata.generation, 2);
    let mut labelled = web.clone();
    labelled.metadata.labels.insert("a".into(), "b".into());
    assert_eq!(
        gateway.update(&labelled).await.unwrap().metadata.generation,
        2
    );
}

#[tokio::test]
async fn an_update_without_a_change_is_not_written() {
    let gateway = TestGateway::start().await;
    let web = gateway.create(&deployment("web")).await.unwrap();
    let again = gateway.update(&web).await.unwrap();
    assert_eq!(
        again.metadata.resource_version,
        web.metadata.resource_version
    );
}

#[tokio::test]
async fn an_outdated_resource_version_is_a_conflict() {
    let gateway = TestGateway::start().await;
    let old = gateway.create(&deployment("web")).await.unwrap();
    let mut new = old.clone();
    new.spec.replicas = Some(2);
    gateway.update(&new).await.unwrap();
    let error = gateway.update(&old).await.unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
    assert_eq!(
        error.message,
        r#"Operation cannot be fulfilled on deployments.apps "web": the object has been modified; please apply your changes to the latest version and try again"#
    );
}

#[tokio::test]
async fn an_update_after_a_conflict_records_the_managers_of_the_newest_version() {
    let gateway = TestGateway::start().await;
    let created = gateway.create(&config_map("a", "1")).await.unwrap();
    gateway.get::<ConfigMap>("a").await.unwrap();
    gateway.store.hold();
    let mut map = created.clone();
    map.data.insert("b".into(), "1".into());
    gateway.update(&map).await.unwrap();
    // The cache does not have `b` yet, but the stored object has it.
    let mut map = config_map("a", "2");
    map.data.insert("b".into(), "1".into());
    let context = RequestContext::of_server().by("two");
    let target = target::<ConfigMap>("a", "");
    let updated = gateway.registry.update(&context, &target, Box::new(map));
    let updated: ConfigMap = typed(updated.await.unwrap()).unwrap();
    let entries = updated.metadata.managed_fields.iter();
    let owned = entries.map(|entry| {
        let fields = entry.fields_v1.as_ref().unwrap();
        (
            entry.manager.as_str(),
            std::str::from_utf8(&fields.raw).unwrap(),
        )
    });
    let expected = [
        (
            "two",
            r#"{"f:data":{"f:value":{}},"f:metadata":{"f:labels":{"f:value":{}}}}"#,
        ),
        (
            "unknown",
            r#"{"f:data":{".":{},"f:b":{}},"f:metadata":{"f:labels":{}}}"#,
        ),
    ];
    let mut owned: Vec<_> = owned.collect();
    owned.sort_unstable();
    assert_eq!(owned, expected);
}

#[tokio::test]
async fn a_stale_cache_does_not_cause_a_conflict() {
    let gateway = TestGateway::start().await;
    let mut map = gateway.create(&config_map("a", "1")).await.unwrap();
    gateway.get::<ConfigMap>("a").await.unwrap();
    gateway.store.hold();
    for value in ["2", "3"] {
        map.data.insert("value".into(), value.into());
        map = gateway.update(&map).await.unwrap();
    }
    assert_eq!(map.data["value"], "3");
}

#[tokio::test]
async fn an_update_without_a_resource_version_replaces_the_current_object() {
    let gateway = TestGateway::start().await;
    gateway.create(&config_map("a", "1")).await.unwrap();
    gateway.get::<ConfigMap>("a").await.unwrap();
    gateway.store.hold();
    let changed = gateway.update(&config_map("a", "2")).await.unwrap();
    let again = gateway.update(&config_map("a", "3")).await.unwrap();
    assert!(again.metadata.resource_version > changed.metadata.resource_version);
    assert_eq!(again.data["value"], "3");
}

#[tokio::test]
async fn concurrent_updates_without_resource_versions_all_commit() {
    let gateway = TestGateway::start().await;
    gateway.create(&config_map("a", "0")).await.unwrap();
    let writes = (1..=8).map(|n| {
        let gateway = &gateway;
        async move { gateway.update(&config_map("a", &n.to_string())).await }
    });
    let outcomes = futures::future::join_all(writes).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

#[tokio::test]
async fn an_update_cannot_change_fields_of_the_gateway() {
    let gateway = TestGateway::start().await;
    let web = gateway.create(&deployment("web")).await.unwrap();
    let mut sent = web.clone();
    sent.status.replicas = 7;
    sent.metadata.generation = 40;
    sent.metadata.creation_timestamp = Default::default();
    assert_eq!(gateway.update(&sent).await.unwrap(), web);
    sent.metadata.deletion_timestamp = Some(Default::default());
    let error = gateway.update(&sent).await.unwrap_err();
    assert_eq!(error.reason, Reason::Invalid);
    sent.metadata.uid = "another".into();
    let error = gateway.update(&sent).await.unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
    assert!(
        error
            .message
            .contains("Precondition failed: UID in precondition: another")
    );
}

#[tokio::test]
async fn selectors_and_most_of_a_pod_are_immutable() {
    let gateway = TestGateway::start().await;
    let mut web = gateway.create(&deployment("web")).await.unwrap();
    web.spec.selector = deployment("other").spec.selector;
    web.spec.template.metadata.labels = deployment("other").spec.template.metadata.labels;
    let error = gateway.update(&web).await.unwrap_err();
    assert_eq!(error.reason, Reason::Invalid);
    assert!(
        error.message.contains("field is immutable"),
        "{}",
        error.message
    );

    let mut one = gateway.create(&pod("one")).await.unwrap();
    one.spec.containers[0].image = "nginx:1.26".into();
    let mut one = gateway.update(&one).await.unwrap();
    assert_eq!(one.metadata.generation, 2);
    one.spec.containers[0].command = vec!["sh".into()];
    let error = gateway.update(&one).await.unwrap_err();
    assert!(error.message.starts_with(
        r#"Pod "one" is invalid: spec: Forbidden: pod updates may not change fields"#
    ));
}

#[tokio::test]
async fn updating_a_missing_object_is_not_found() {
    let gateway = TestGateway::start().await;
    let error = gateway.update(&deployment("web")).await.unwrap_err();
    assert_eq!(error.reason, Reason::NotFound);
    assert_eq!(error.message, r#"deployments.apps "web" not found"#);
}

/// Checks E2: a resourceVersion is only required for an object that exists.
#[tokio::test]
async fn an_update_without_a_resource_version_of_a_missing_object_is_not_found() {
    let gateway = TestGateway::start().await;
    let mut budget = PodDisruptionBudget::default();
    budget.metadata.name = "web".into();
    let error = gateway.update(&budget).await.unwrap_err();
    assert_eq!(error.reason, Reason::NotFound);
    gateway.create(&budget).await.unwrap();
    let error = gateway.update(&budget).await.unwrap_err();
    assert_eq!(error.reason, Reason::Invalid);
    let expected = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert!(error.message.ends_with(expected), "{error}");
}

/// Updates an object that does not exist: nothing in a dry run, and an object that has a uid is another one.
async fn created_by_update<T: Resource + Object>(object: T) {
    let gateway = TestGateway::start().await;
    let mut object = object;
    Resource::meta_mut(&mut object).name = "web".into();
    let target = target::<T>("web", "");
    let update = async |context: &RequestContext, object: &T| {
        let object = Box::new(object.clone());
        gateway.registry.update(context, &target, object).await
    };
    let dry = RequestContext::of_server().dry(true);
    assert!(update(&dry, &object).await.unwrap().created);
    let missing = gateway.get::<T>("web").await.unwrap_err();
    assert_eq!(missing.reason, Reason::NotFound);

    let mut former = object.clone();
    Resource::meta_mut(&mut former).uid = "5be0".into();
    let refused = update(&RequestContext::of_server(), &former).await;
    let error = refused.unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
    let expected = "Precondition failed: UID in precondition: 5be0, UID in object meta: ";
    assert!(error.message.ends_with(expected), "{error}");

    // As upstream, the resourceVersion of an object that does not exist is not compared.
    Resource::meta_mut(&mut object).resource_version = "7".into();
    let created = update(&RequestContext::of_server(), &object).await.unwrap();
    assert!(created.created);
    let created: T = typed(created).unwrap();
    let again = update(&RequestContext::of_server(), &created)
        .await
        .unwrap();
    assert!(!again.created);
}

/// Checks E3: the kinds that upstream creates on update.
#[tokio::test]
async fn an_update_creates_some_kinds() {
    created_by_update(Lease::default()).await;
    created_by_update(LimitRange::default()).await;
    created_by_update(Endpoints::default()).await;
    created_by_update(Role::default()).await;
    created_by_update(ClusterRole::default()).await;
    let role_ref = RoleRef {
        api_group: "rbac.authorization.k8s.io".into(),
        kind: "ClusterRole".into(),
        name: "view".into(),
    };
    created_by_update(RoleBinding {
        role_ref: role_ref.clone(),
        ..Default::default()
    })
    .await;
    created_by_update(ClusterRoleBinding {
        role_ref,
        ..Default::default()
    })
    .await;
    created_by_update(RuntimeClass {
        handler: "runc".into(),
        ..Default::default()
    })
    .await;
    let mut service = Service::default();
    let port = ServicePort {
        port: 80,
        ..Default::default()
    };
    service.spec.ports = vec![port];
    created_by_update(service).await;
    let mut event = Event::default();
    event.metadata.namespace = NAMESPACE.into();
    event.involved_object.namespace = NAMESPACE.into();
    created_by_update(event).await;
}

/// Checks E3: the others must exist.
#[tokio::test]
async fn an_update_does_not_create_a_status() {
    let gateway = TestGateway::start().await;
    let mut web = Service::default();
    web.metadata.name = "web".into();
    let error = gateway.update_part("status", &web).await.unwrap_err();
    assert_eq!(error.reason, Reason::NotFound);
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let gateway = TestGateway::start().await;
    let mut web = gateway.create(&deployment("web")).await.unwrap();
    web.spec.replicas = Some(9);
    let dry = RequestContext::of_server().dry(true);
    let response = gateway
        .registry
        .update(&dry, &target::<Deployment>("web", ""), Box::new(web))
        .await;
    let returned: Deployment = crate::registry::gateway::typed(response.unwrap()).unwrap();
    assert_eq!(returned.spec.replicas, Some(9));
    assert_eq!(
        gateway
            .get::<Deployment>("web")
            .await
            .unwrap()
            .spec
            .replicas,
        Some(1)
    );
}

#[tokio::test]
async fn a_binding_cannot_be_updated() {
    let gateway = TestGateway::start().await;
    gateway.create(&pod("one")).await.unwrap();
    let error = gateway
        .update_part("binding", &pod("one"))
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::MethodNotAllowed);
    assert!(gateway.get::<Pod>("one").await.is_ok());
}
