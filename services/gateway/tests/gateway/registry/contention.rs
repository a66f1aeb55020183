//! Tests of concurrent writes to one object.

use futures::future::join_all;
use serde_json::json;
use setpoint_proto::Reason;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_store::contract::objects::config_map;

use crate::registry::gateway::TestGateway;

/// Checks F12, I10: a patch without a revision is retried until it commits.
#[tokio::test]
async fn patches_without_a_revision_all_commit_under_contention() {
    let gateway = TestGateway::start().await;
    gateway.create(&config_map("hot", "0")).await.unwrap();
    let gateways = [gateway.another().await, gateway.another().await];
    for gateway in &gateways {
        gateway.store.delay(std::time::Duration::from_millis(1));
    }
    let writers = (0..24_usize).map(|writer| {
        let gateway = &gateways[writer % 2];
        async move {
            for n in 0..10 {
                let body = json!({"data": {format!("{writer}"): format!("{n}")}});
                let patched = gateway.patch::<ConfigMap>("hot", Type::Merge, body).await;
                patched.unwrap();
            }
        }
    });
    join_all(writers).await;
    let hot = gateway.get::<ConfigMap>("hot").await.unwrap();
    let last = (0..24).filter(|writer| hot.data[&writer.to_string()] == "9");
    assert_eq!(last.count(), 24);
}

/// Checks F12: a patch with a revision is not retried on a later one.
#[tokio::test]
async fn a_patch_with_an_outdated_revision_is_a_conflict() {
    let gateway = TestGateway::start().await;
    let old = gateway.create(&config_map("hot", "0")).await.unwrap();
    gateway.update(&config_map("hot", "1")).await.unwrap();
    let revision = old.metadata.resource_version;
    let body = json!({"metadata": {"resourceVersion": revision}, "data": {"a": "b"}});
    let refused = gateway.patch::<ConfigMap>("hot", Type::Merge, body).await;
    assert_eq!(refused.unwrap_err().reason, Reason::Conflict);
}
