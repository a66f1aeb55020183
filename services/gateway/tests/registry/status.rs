//! What becomes of a status that is reported.

use setpoint_proto::Reason;
use setpoint_proto::apps::Deployment;
use setpoint_proto::core::{Namespace, Pod, Service};
use setpoint_proto::meta::OwnerReference;

use crate::world::{World, deployment, pod, replica_set};

#[tokio::test]
async fn a_report_changes_the_status_and_nothing_else() {
    let world = World::start().await;
    let mut web = deployment("web");
    web.metadata.annotations.insert("a".into(), "b".into());
    web.metadata.finalizers.push("a.io/b".into());
    let web = world.create(&web).await.unwrap();
    let mut report = Deployment::default();
    report.metadata.name = "web".into();
    report.metadata.labels.insert("a".into(), "b".into());
    report.spec.replicas = Some(40);
    report.status.replicas = 1;
    let reported = world.report(&report).await.unwrap();
    let mut expected = web.clone();
    expected.status.replicas = 1;
    expected.metadata.resource_version = reported.metadata.resource_version.clone();
    assert_eq!(reported, expected);
    assert_ne!(
        reported.metadata.resource_version,
        web.metadata.resource_version
    );
}

#[tokio::test]
async fn a_report_on_an_old_state_is_a_conflict() {
    let world = World::start().await;
    let mut web = world.create(&deployment("web")).await.unwrap();
    let old = web.clone();
    web.spec.replicas = Some(2);
    world.update(&web).await.unwrap();
    let error = world.update_part("status", &old).await.unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
}

#[tokio::test]
async fn the_same_report_twice_is_written_once() {
    let world = World::start().await;
    world.create(&pod("one")).await.unwrap();
    let mut report = pod("one");
    report.status.phase = "Running".into();
    let first: Pod = world.report(&report).await.unwrap();
    let second = world.report(&report).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(first.status.qos_class, "BestEffort");
}

/// Checks K4.
#[tokio::test]
async fn metadata_sent_with_a_status_is_kept() {
    let world = World::start().await;
    let mut namespace = Namespace::default();
    namespace.metadata.name = "staging".into();
    let mut namespace = world.create(&namespace).await.unwrap();
    let mut service = Service::default();
    service.metadata.name = "web".into();
    service.spec.cluster_ip = "None".into();
    let mut service = world.create(&service).await.unwrap();
    let owner = world.create(&deployment("web")).await.unwrap();
    let set = replica_set("web-1", &owner);
    let mut set = world.create(&set).await.unwrap();
    let label = |labels: &mut std::collections::BTreeMap<String, String>| {
        labels.insert("patched".into(), "true".into());
    };
    label(&mut namespace.metadata.labels);
    label(&mut service.metadata.labels);
    label(&mut set.metadata.labels);
    set.metadata.owner_references.clear();
    let namespace = world.update_part("status", &namespace).await.unwrap();
    let service = world.update_part("status", &service).await.unwrap();
    let set = world.update_part("status", &set).await.unwrap();
    for labels in [
        namespace.metadata.labels,
        service.metadata.labels,
        set.metadata.labels,
    ] {
        assert_eq!(labels["patched"], "true");
    }
    assert!(set.metadata.owner_references.is_empty());
}

/// Checks K4: upstream keeps a Deployment's labels and a Pod's owners from those who write a status.
#[tokio::test]
async fn some_metadata_is_not_for_those_who_write_a_status() {
    let world = World::start().await;
    let mut web = world.create(&deployment("web")).await.unwrap();
    web.metadata.labels.insert("a".into(), "b".into());
    web.metadata.annotations.insert("a".into(), "b".into());
    let web = world.update_part("status", &web).await.unwrap();
    assert!(web.metadata.labels.is_empty());
    assert_eq!(web.metadata.annotations["a"], "b");
    let mut one = world.create(&pod("one")).await.unwrap();
    one.metadata.labels.insert("a".into(), "b".into());
    one.metadata.owner_references = vec![OwnerReference::default()];
    let one = world.update_part("status", &one).await.unwrap();
    assert!(one.metadata.owner_references.is_empty());
    assert_eq!(one.metadata.labels["a"], "b");
}
