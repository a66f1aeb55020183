//! The one number that others may change.

use serde_json::json;
use setpoint_gateway::registry::{AtLeast, Patch, RequestContext};
use setpoint_proto::Reason;
use setpoint_proto::apps::Deployment;
use setpoint_proto::autoscaling::Scale;
use setpoint_proto::core::Pod;
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_store::contract::objects::kind;

use crate::world::{World, deployment, target, typed};

async fn scale(world: &World) -> Scale {
    let target = target::<Deployment>("web", "scale");
    let response = world
        .registry
        .get(&RequestContext::default(), &target, AtLeast::Newest)
        .await
        .unwrap();
    typed(response).unwrap()
}

async fn patch(world: &World, body: serde_json::Value) -> Result<Scale, setpoint_proto::ApiError> {
    let patch = Patch {
        r#type: Type::Merge,
        body,
        bytes: 0,
        check: |_, _| Ok(Vec::new()),
    };
    let target = target::<Deployment>("web", "scale");
    typed(
        world
            .registry
            .patch(&RequestContext::default(), &target, &patch)
            .await?,
    )
}

#[tokio::test]
async fn a_scale_is_read_updated_and_patched() {
    let world = World::start().await;
    let web = world.create(&deployment("web")).await.unwrap();
    let mut read = scale(&world).await;
    assert_eq!(
        (read.spec.replicas, read.status.selector.as_str()),
        (1, "app=web")
    );
    assert_eq!(
        read.metadata.resource_version,
        web.metadata.resource_version
    );

    read.spec.replicas = 5;
    let target = target::<Deployment>("web", "scale");
    let response = world
        .registry
        .update(&RequestContext::default(), &target, Box::new(read))
        .await
        .unwrap();
    assert_eq!(typed::<Scale>(response).unwrap().spec.replicas, 5);
    assert_eq!(
        patch(&world, json!({"spec": {"replicas": 2}}))
            .await
            .unwrap()
            .spec
            .replicas,
        2
    );

    let web = world.get::<Deployment>("web").await.unwrap();
    assert_eq!((web.spec.replicas, web.metadata.generation), (Some(2), 3));
}

#[tokio::test]
async fn a_stale_or_negative_scale_is_refused() {
    let world = World::start().await;
    world.create(&deployment("web")).await.unwrap();
    let mut old = scale(&world).await;
    patch(&world, json!({"spec": {"replicas": 2}}))
        .await
        .unwrap();
    old.spec.replicas = 7;
    let target = target::<Deployment>("web", "scale");
    let context = RequestContext::default();
    let update = |scale| world.registry.update(&context, &target, Box::new(scale));
    assert_eq!(
        update(old.clone()).await.unwrap_err().reason,
        Reason::Conflict
    );
    old.metadata.resource_version.clear();
    old.spec.replicas = -1;
    let error = update(old).await.unwrap_err();
    assert!(
        error.message.contains("must be greater than or equal to 0"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn not_everything_has_a_scale() {
    let none = setpoint_gateway::registry::Target::new(kind::<Pod>(), "default", "a", "scale");
    assert_eq!(none.unwrap_err().reason, Reason::NotFound);
}
