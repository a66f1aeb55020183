//! What becomes of a status that is reported.

use setpoint_proto::Reason;
use setpoint_proto::apps::Deployment;
use setpoint_proto::core::Pod;

use crate::world::{World, deployment, pod};

#[tokio::test]
async fn a_report_changes_the_status_and_nothing_else() {
    let world = World::start().await;
    let web = world.create(&deployment("web")).await.unwrap();
    let mut report = Deployment::default();
    report.metadata.name = "web".into();
    report.metadata.labels.insert("a".into(), "b".into());
    report.spec.replicas = Some(40);
    report.status.replicas = 1;
    let reported = world.update_part("status", &report).await.unwrap();
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
    let first: Pod = world.update_part("status", &report).await.unwrap();
    let second = world.update_part("status", &report).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(first.status.qos_class, "BestEffort");
}
