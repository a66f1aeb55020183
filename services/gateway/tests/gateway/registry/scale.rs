//! Tests of the subresource `scale`.

use serde_json::json;
use setpoint_gateway::registry::{AtLeast, RequestContext};
use setpoint_gateway::verbs::Patch;
use setpoint_proto::Reason;
use setpoint_proto::apps::Deployment;
use setpoint_proto::autoscaling::Scale;
use setpoint_proto::core::Pod;
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_store::contract::objects::kind;

use crate::registry::gateway::{TestGateway, deployment, target, typed};

async fn scale(gateway: &TestGateway) -> Scale {
    let target = target::<Deployment>("web", "scale");
    let response = gateway
        .registry
        .get(&RequestContext::of_server(), &target, AtLeast::Newest)
        .await
        .unwrap();
    typed(response).unwrap()
}

async fn patch(
    gateway: &TestGateway,
    body: serde_json::Value,
) -> Result<Scale, setpoint_proto::ApiError> {
    let patch = Patch {
        r#type: Type::Merge,
        body,
        bytes: 0,
        force: false,
        check: |_, _| Ok(Vec::new()),
    };
    let target = target::<Deployment>("web", "scale");
    typed(
        gateway
            .registry
            .patch(&RequestContext::of_server(), &target, &patch)
            .await?,
    )
}

#[tokio::test]
async fn a_scale_is_read_updated_and_patched() {
    let gateway = TestGateway::start().await;
    let web = gateway.create(&deployment("web")).await.unwrap();
    let mut read = scale(&gateway).await;
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
    let response = gateway
        .registry
        .update(&RequestContext::of_server(), &target, Box::new(read))
        .await
        .unwrap();
    assert_eq!(typed::<Scale>(response).unwrap().spec.replicas, 5);
    assert_eq!(
        patch(&gateway, json!({"spec": {"replicas": 2}}))
            .await
            .unwrap()
            .spec
            .replicas,
        2
    );

    let web = gateway.get::<Deployment>("web").await.unwrap();
    assert_eq!((web.spec.replicas, web.metadata.generation), (Some(2), 3));
}

#[tokio::test]
async fn a_stale_or_negative_scale_is_refused() {
    let gateway = TestGateway::start().await;
    gateway.create(&deployment("web")).await.unwrap();
    let mut old = scale(&gateway).await;
    patch(&gateway, json!({"spec": {"replicas": 2}}))
        .await
        .unwrap();
    old.spec.replicas = 7;
    let target = target::<Deployment>("web", "scale");
    let context = RequestContext::of_server();
    let update = |scale| gateway.registry.update(&context, &target, Box::new(scale));
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
async fn a_kind_without_a_scale_is_not_found() {
    let none = setpoint_gateway::registry::Target::new(kind::<Pod>(), "default", "a", "scale");
    assert_eq!(none.unwrap_err().reason, Reason::NotFound);
}
