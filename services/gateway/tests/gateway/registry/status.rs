//! Tests of the subresource `status`.

use setpoint_proto::Reason;
use setpoint_proto::apps::Deployment;
use setpoint_proto::core::{Namespace, Pod, Service};
use setpoint_proto::meta::OwnerReference;

use crate::registry::gateway::{TestGateway, deployment, pod, replica_set};

#[tokio::test]
async fn report_status_changes_only_the_status() {
    let gateway = TestGateway::start().await;
    let mut web = deployment("web");
    web.metadata.annotations.insert("a".into(), "b".into());
    web.metadata.finalizers.push("a.io/b".into());
    let web = gateway.create(&web).await.unwrap();
    let mut report = Deployment::default();
    report.metadata.name = "web".into();
    report.metadata.labels.insert("a".into(), "b".into());
    report.spec.replicas = Some(40);
    report.status.replicas = 1;
    let reported = gateway.report(&report).await.unwrap();
    let mut expected = web.clone();
    expected.status.replicas = 1;
    let managers = &reported.metadata.managed_fields;
    let parts = managers.iter().map(|entry| entry.subresource.as_str());
    assert_eq!(parts.collect::<Vec<_>>(), ["", "status"]);
    expected.metadata.managed_fields.clone_from(managers);
    expected.metadata.resource_version = reported.metadata.resource_version.clone();
    assert_eq!(reported, expected);
    assert_ne!(
        reported.metadata.resource_version,
        web.metadata.resource_version
    );
}

#[tokio::test]
async fn a_status_with_an_outdated_resource_version_is_a_conflict() {
    let gateway = TestGateway::start().await;
    let mut web = gateway.create(&deployment("web")).await.unwrap();
    let old = web.clone();
    web.spec.replicas = Some(2);
    gateway.update(&web).await.unwrap();
    let error = gateway.update_part("status", &old).await.unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
}

#[tokio::test]
async fn an_unchanged_status_is_not_written() {
    let gateway = TestGateway::start().await;
    gateway.create(&pod("one")).await.unwrap();
    let mut report = pod("one");
    report.status.phase = "Running".into();
    let first: Pod = gateway.report(&report).await.unwrap();
    let second = gateway.report(&report).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(first.status.qos_class, "BestEffort");
}

/// Checks K4.
#[tokio::test]
async fn metadata_sent_with_a_status_is_stored() {
    let gateway = TestGateway::start().await;
    let mut namespace = Namespace::default();
    namespace.metadata.name = "staging".into();
    let mut namespace = gateway.create(&namespace).await.unwrap();
    let mut service = Service::default();
    service.metadata.name = "web".into();
    service.spec.cluster_ip = "None".into();
    let mut service = gateway.create(&service).await.unwrap();
    let owner = gateway.create(&deployment("web")).await.unwrap();
    let set = replica_set("web-1", &owner);
    let mut set = gateway.create(&set).await.unwrap();
    let label = |labels: &mut std::collections::BTreeMap<String, String>| {
        labels.insert("patched".into(), "true".into());
    };
    label(&mut namespace.metadata.labels);
    label(&mut service.metadata.labels);
    label(&mut set.metadata.labels);
    set.metadata.owner_references.clear();
    let namespace = gateway.update_part("status", &namespace).await.unwrap();
    let service = gateway.update_part("status", &service).await.unwrap();
    let set = gateway.update_part("status", &set).await.unwrap();
    for labels in [
        namespace.metadata.labels,
        service.metadata.labels,
        set.metadata.labels,
    ] {
        assert_eq!(labels["patched"], "true");
    }
    assert!(set.metadata.owner_references.is_empty());
}

/// Checks K4: as upstream, a status cannot change the labels of a Deployment and the owners of a Pod.
#[tokio::test]
async fn some_metadata_cannot_be_changed_with_a_status() {
    let gateway = TestGateway::start().await;
    let mut web = gateway.create(&deployment("web")).await.unwrap();
    web.metadata.labels.insert("a".into(), "b".into());
    web.metadata.annotations.insert("a".into(), "b".into());
    let web = gateway.update_part("status", &web).await.unwrap();
    assert!(web.metadata.labels.is_empty());
    assert_eq!(web.metadata.annotations["a"], "b");
    let mut one = gateway.create(&pod("one")).await.unwrap();
    one.metadata.labels.insert("a".into(), "b".into());
    one.metadata.owner_references = vec![OwnerReference::default()];
    let one = gateway.update_part("status", &one).await.unwrap();
    assert!(one.metadata.owner_references.is_empty());
    assert_eq!(one.metadata.labels["a"], "b");
}
