//! Tests of the subresource `scale`.

use std::collections::BTreeMap;

use serde_json::json;
use setpoint_codec::Object;
use setpoint_gateway::registry::{AtLeast, Patch, RequestContext};
use setpoint_proto::apps::{Deployment, ReplicaSet};
use setpoint_proto::autoscaling::Scale;
use setpoint_proto::core::Pod;
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_proto::{ApiError, Reason, Resource};
use setpoint_store::contract::objects::kind;

use crate::registry::gateway::{TestGateway, deployment, target, typed};

async fn scale(gateway: &TestGateway) -> Scale {
    let target = target::<Deployment>("web", "scale");
    let response = gateway
        .registry
        .get(&RequestContext::default(), &target, AtLeast::Newest)
        .await
        .unwrap();
    typed(response).unwrap()
}

async fn patch(gateway: &TestGateway, body: serde_json::Value) -> Result<Scale, ApiError> {
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
            .patch(&RequestContext::default(), &target, &patch)
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
        .update(&RequestContext::default(), &target, Box::new(read))
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
    let context = RequestContext::default();
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

/// A change of a scale, given the metadata of its object, and what the error names.
type Case = (fn(&mut Scale, &ObjectMeta), &'static str);

/// Checks that a scale is validated as its object.
async fn check_scales<T: Resource + Object>(object: &T) {
    const CASES: [Case; 14] = [
        (|_, _| {}, ""),
        (|it, _| it.spec.replicas = 10, ""),
        (|it, _| it.spec.replicas = 0, ""),
        (|it, _| it.spec = Default::default(), ""),
        (|it, _| it.spec.replicas = 100, ""),
        (|it, _| it.spec.replicas = -1, "spec.replicas"),
        (|it, _| it.status.replicas = -1, ""),
        (|it, _| it.metadata.name = "other".into(), "BadRequest"),
        (|it, _| it.metadata.namespace = "other".into(), "BadRequest"),
        (
            |it, own| {
                it.metadata.uid.clone_from(&own.uid);
                it.metadata
                    .resource_version
                    .clone_from(&own.resource_version);
            },
            "",
        ),
        (|it, _| it.metadata.uid = "other".into(), "Conflict"),
        (
            |it, _| it.metadata.resource_version = "1".into(),
            "Conflict",
        ),
        (|it, _| it.metadata.labels = wrong_key(), "metadata.labels"),
        (
            |it, _| {
                it.metadata.annotations = wrong_key();
                it.spec.replicas = -1;
            },
            "metadata.annotations, spec.replicas",
        ),
    ];
    for (number, (change, expected)) in CASES.into_iter().enumerate() {
        let gateway = TestGateway::start().await;
        let stored = gateway.create(object).await.unwrap();
        let mut scale = Scale::default();
        scale.metadata.name = "web".into();
        scale.spec.replicas = 1;
        change(&mut scale, Resource::meta(&stored));
        let (context, target) = (RequestContext::default(), target::<T>("web", "scale"));
        let outcome = gateway
            .registry
            .update(&context, &target, Box::new(scale))
            .await;
        let found = outcome.err().map(named).unwrap_or_default();
        assert_eq!(found, expected, "case {number} of {}", T::RESOURCE);
    }
}

fn wrong_key() -> BTreeMap<String, String> {
    [("a b".to_owned(), "c".to_owned())].into()
}

/// Returns the fields that an error names, or its reason.
fn named(error: ApiError) -> String {
    let fields = error.causes().iter().map(|cause| cause.field.as_str());
    let fields: Vec<_> = fields.collect();
    match fields.is_empty() {
        true => error.reason.name().to_owned(),
        false => fields.join(", "),
    }
}

#[tokio::test]
async fn a_scale_is_validated_as_its_object() {
    let web = deployment("web");
    let mut set = ReplicaSet::default();
    set.metadata.name = "web".into();
    set.spec.selector.clone_from(&web.spec.selector);
    set.spec.template.clone_from(&web.spec.template);
    check_scales(&web).await;
    check_scales(&set).await;
}
