//! Tests of the subresource `binding`.

use setpoint_model::condition;
use setpoint_proto::Reason;
use setpoint_proto::core::Pod;
use setpoint_proto::meta::Status;

use crate::gateway::{TestGateway, pod, typed};

/// Checks C5 at the gateway: a second binding is refused even if the cache is stale.
#[tokio::test]
async fn a_bound_pod_cannot_be_bound_again_with_a_stale_cache() {
    let gateway = TestGateway::start().await;
    gateway.create(&pod("one")).await.unwrap();
    gateway.get::<Pod>("one").await.unwrap();
    gateway.store.hold();
    let response = gateway.bind("one", "node-1").await.unwrap();
    let revision = response.revision;
    assert_eq!(typed::<Status>(response).unwrap().status, "Success");
    let error = gateway.bind("one", "node-2").await.unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
    assert_eq!(
        error.message,
        r#"Operation cannot be fulfilled on pods/binding "one": pod one is already assigned to node "node-1""#
    );
    gateway.store.release();
    let bound = gateway.get::<Pod>("one").await.unwrap();
    assert_eq!(bound.spec.node_name, "node-1");
    assert!(condition::is_true(&bound.status.conditions, "PodScheduled"));
    assert_eq!(bound.metadata.resource_version, revision.to_string());
}

#[tokio::test]
async fn binding_a_missing_pod_is_not_found() {
    let gateway = TestGateway::start().await;
    let error = gateway.bind("one", "node-1").await.unwrap_err();
    assert_eq!(error.reason, Reason::NotFound);
}
