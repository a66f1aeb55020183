//! A Pod is given its node.

use setpoint_model::condition;
use setpoint_proto::Reason;
use setpoint_proto::core::Pod;
use setpoint_proto::meta::Status;

use crate::world::{World, pod, typed};

/// Checks C5 at the gateway: whoever comes second is refused, however old the scheduler's view.
#[tokio::test]
async fn a_pod_is_bound_once_whatever_the_cache_believes() {
    let world = World::start().await;
    world.create(&pod("one")).await.unwrap();
    world.get::<Pod>("one").await.unwrap();
    world.store.hold();
    let response = world.bind("one", "node-1").await.unwrap();
    let revision = response.revision;
    assert_eq!(typed::<Status>(response).unwrap().status, "Success");
    let error = world.bind("one", "node-2").await.unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
    assert_eq!(
        error.message,
        r#"Operation cannot be fulfilled on pods/binding "one": pod one is already assigned to node "node-1""#
    );
    world.store.release();
    let bound = world.get::<Pod>("one").await.unwrap();
    assert_eq!(bound.spec.node_name, "node-1");
    assert!(condition::is_true(&bound.status.conditions, "PodScheduled"));
    assert_eq!(bound.metadata.resource_version, revision.to_string());
}

#[tokio::test]
async fn a_pod_that_is_not_there_cannot_be_bound() {
    let world = World::start().await;
    let error = world.bind("one", "node-1").await.unwrap_err();
    assert_eq!(error.reason, Reason::NotFound);
}
