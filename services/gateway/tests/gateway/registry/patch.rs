//! Tests of the verb `patch`.

use serde_json::json;
use setpoint_proto::Reason;
use setpoint_proto::apps::Deployment;
use setpoint_proto::core::{ConfigMap, Service, ServicePort};
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_store::contract::objects::config_map;

use crate::registry::gateway::{TestGateway, deployment};

#[tokio::test]
async fn patches_change_what_they_name() {
    let gateway = TestGateway::start().await;
    gateway.create(&deployment("web")).await.unwrap();
    let merged = gateway
        .patch::<Deployment>("web", Type::Merge, json!({"spec": {"replicas": 2}}))
        .await;
    assert_eq!(merged.unwrap().spec.replicas, Some(2));
    let replace = json!([{"op": "replace", "path": "/spec/replicas", "value": 3}]);
    let replaced = gateway
        .patch::<Deployment>("web", Type::Json, replace)
        .await;
    assert_eq!(replaced.unwrap().spec.replicas, Some(3));
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.26"}]}}}});
    let web = gateway
        .patch::<Deployment>("web", Type::Strategic, image)
        .await
        .unwrap();
    assert_eq!(web.spec.template.spec.containers.len(), 1);
    assert_eq!(web.spec.template.spec.containers[0].image, "nginx:1.26");
    assert_eq!(web.metadata.generation, 4);
}

#[tokio::test]
async fn a_patch_applies_to_the_stored_object_with_a_stale_cache() {
    let gateway = TestGateway::start().await;
    gateway.create(&config_map("a", "1")).await.unwrap();
    gateway.get::<ConfigMap>("a").await.unwrap();
    gateway.store.hold();
    for key in ["b", "c"] {
        let body = json!({"data": {key: "x"}});
        gateway
            .patch::<ConfigMap>("a", Type::Merge, body)
            .await
            .unwrap();
    }
    let test = json!([{"op": "test", "path": "/data/c", "value": "x"}, {"op": "remove", "path": "/data/c"}]);
    let map = gateway
        .patch::<ConfigMap>("a", Type::Json, test)
        .await
        .unwrap();
    assert_eq!(map.data.keys().collect::<Vec<_>>(), ["b", "value"]);
}

#[tokio::test]
async fn a_patch_with_an_outdated_resource_version_is_a_conflict() {
    let gateway = TestGateway::start().await;
    let old = gateway
        .create(&config_map("a", "1"))
        .await
        .unwrap()
        .metadata
        .resource_version;
    let patch_of =
        |revision: &str| json!({"metadata": {"resourceVersion": revision}, "data": {"value": "2"}});
    gateway
        .patch::<ConfigMap>("a", Type::Merge, patch_of(&old))
        .await
        .unwrap();
    let error = gateway
        .patch::<ConfigMap>("a", Type::Merge, patch_of(&old))
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
}

#[tokio::test]
async fn a_patch_with_an_invalid_result_or_type_is_refused() {
    let gateway = TestGateway::start().await;
    gateway.create(&deployment("web")).await.unwrap();
    let negative = json!({"spec": {"replicas": -1}});
    let error = gateway
        .patch::<Deployment>("web", Type::Merge, negative)
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::Invalid);
    let error = gateway
        .patch::<Deployment>("web", Type::Unspecified, json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::UnsupportedMediaType);
}

/// Checks T3: a value of the wrong type is 422, as upstream.
#[tokio::test]
async fn a_patch_with_a_value_of_the_wrong_type_is_invalid() {
    let gateway = TestGateway::start().await;
    gateway.create(&config_map("a", "1")).await.unwrap();
    let labels = json!({"metadata": {"labels": "x"}});
    let operation = json!([{"op": "add", "path": "/metadata/labels", "value": "x"}]);
    let decoder = "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.labels of type map[string]string";
    for (r#type, body, value, problem) in [
        (
            Type::Strategic,
            labels.clone(),
            r#""map[metadata:map[labels:x]]": "#,
            "cannot restore map from string",
        ),
        (Type::Merge, labels, r#""{\"apiVersion\":\"v1\","#, decoder),
        (
            Type::Json,
            operation,
            r#""{\"apiVersion\":\"v1\","#,
            decoder,
        ),
    ] {
        let refused = gateway.patch::<ConfigMap>("a", r#type, body).await;
        let error = refused.unwrap_err();
        assert_eq!(error.code(), 422);
        let head = format!(" \"\" is invalid: patch: Invalid value: {value}");
        assert!(error.message.starts_with(&head), "{error}");
        assert!(error.message.ends_with(problem), "{error}");
        assert_eq!(error.causes()[0].field, "patch");
    }
}

#[tokio::test]
async fn a_patch_without_a_change_is_not_written() {
    let gateway = TestGateway::start().await;
    let web = gateway.create(&deployment("web")).await.unwrap();
    let same = gateway
        .patch::<Deployment>("web", Type::Merge, json!({"spec": {"replicas": 1}}))
        .await;
    assert_eq!(same.unwrap(), web);
}

/// Checks K6: a merge patch with only the new type, as `kubectl patch` sends it, is valid.
#[tokio::test]
async fn changing_the_type_of_a_service_drops_fields_of_the_old_type() {
    let gateway = TestGateway::start().await;
    let mut web = Service::default();
    web.metadata.name = "web".into();
    web.spec.r#type = "NodePort".into();
    web.spec.ports = vec![ServicePort {
        port: 80,
        ..Default::default()
    }];
    let web = gateway.create(&web).await.unwrap();
    assert!((30_000..32_768).contains(&web.spec.ports[0].node_port));
    let address = web.spec.cluster_ip;

    let to = |r#type: &str| json!({"spec": {"type": r#type, "externalName": "example.com"}});
    let inside: Service = gateway
        .patch("web", Type::Merge, to("ClusterIP"))
        .await
        .unwrap();
    assert_eq!(inside.spec.ports[0].node_port, 0);
    assert_eq!(inside.spec.cluster_ip, address);
    assert_eq!(inside.spec.external_traffic_policy, "");

    let elsewhere: Service = gateway
        .patch("web", Type::Merge, to("ExternalName"))
        .await
        .unwrap();
    assert_eq!(elsewhere.spec.cluster_ip, "");
    assert!(elsewhere.spec.cluster_ips.is_empty());
    assert!(elsewhere.spec.ip_families.is_empty());

    let back: Service = gateway
        .patch("web", Type::Merge, to("NodePort"))
        .await
        .unwrap();
    assert!(back.spec.cluster_ip.starts_with("10.96."));
    assert_ne!(back.spec.ports[0].node_port, 0);
}
