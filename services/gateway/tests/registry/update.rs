//! Tests of the verb `update`.

use setpoint_gateway::registry::RequestContext;
use setpoint_proto::Reason;
use setpoint_proto::apps::Deployment;
use setpoint_proto::core::{ConfigMap, Pod};
use setpoint_store::contract::objects::config_map;

use crate::gateway::{TestGateway, deployment, pod, target, typed};

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
    let context = RequestContext::default().by("two");
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

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let gateway = TestGateway::start().await;
    let mut web = gateway.create(&deployment("web")).await.unwrap();
    web.spec.replicas = Some(9);
    let dry = RequestContext::default().dry(true);
    let response = gateway
        .registry
        .update(&dry, &target::<Deployment>("web", ""), Box::new(web))
        .await;
    let returned: Deployment = crate::gateway::typed(response.unwrap()).unwrap();
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
