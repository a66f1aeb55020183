//! Many writers at one object.

use futures::future::join_all;
use serde_json::json;
use setpoint_proto::Reason;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_store::contract::objects::config_map;

use crate::world::World;

/// Checks F12, I10: a patch that names no revision waits for its turn, however many others patch.
#[tokio::test]
async fn patches_without_a_revision_all_commit_under_contention() {
    let world = World::start().await;
    world.create(&config_map("hot", "0")).await.unwrap();
    let gateways = [world.beside().await, world.beside().await];
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
    let hot = world.get::<ConfigMap>("hot").await.unwrap();
    let last = (0..24).filter(|writer| hot.data[&writer.to_string()] == "9");
    assert_eq!(last.count(), 24);
}

/// Checks F12: one that names a revision is refused once that has passed.
#[tokio::test]
async fn a_patch_of_a_revision_that_has_passed_is_refused() {
    let world = World::start().await;
    let old = world.create(&config_map("hot", "0")).await.unwrap();
    world.update(&config_map("hot", "1")).await.unwrap();
    let revision = old.metadata.resource_version;
    let body = json!({"metadata": {"resourceVersion": revision}, "data": {"a": "b"}});
    let refused = world.patch::<ConfigMap>("hot", Type::Merge, body).await;
    assert_eq!(refused.unwrap_err().reason, Reason::Conflict);
}
