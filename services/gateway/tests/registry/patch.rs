//! What becomes of an object that is changed in part.

use serde_json::json;
use setpoint_proto::Reason;
use setpoint_proto::apps::Deployment;
use setpoint_proto::core::{ConfigMap, Service, ServicePort};
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_store::contract::objects::config_map;

use crate::world::{World, deployment};

#[tokio::test]
async fn each_kind_of_patch_changes_its_part() {
    let world = World::start().await;
    world.create(&deployment("web")).await.unwrap();
    let merged = world
        .patch::<Deployment>("web", Type::Merge, json!({"spec": {"replicas": 2}}))
        .await;
    assert_eq!(merged.unwrap().spec.replicas, Some(2));
    let replace = json!([{"op": "replace", "path": "/spec/replicas", "value": 3}]);
    let replaced = world.patch::<Deployment>("web", Type::Json, replace).await;
    assert_eq!(replaced.unwrap().spec.replicas, Some(3));
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.26"}]}}}});
    let web = world
        .patch::<Deployment>("web", Type::Strategic, image)
        .await
        .unwrap();
    assert_eq!(web.spec.template.spec.containers.len(), 1);
    assert_eq!(web.spec.template.spec.containers[0].image, "nginx:1.26");
    assert_eq!(web.metadata.generation, 4);
}

#[tokio::test]
async fn a_patch_applies_to_the_newest_state_even_if_the_cache_lags() {
    let world = World::start().await;
    world.create(&config_map("a", "1")).await.unwrap();
    world.get::<ConfigMap>("a").await.unwrap();
    world.store.hold();
    for key in ["b", "c"] {
        let body = json!({"data": {key: "x"}});
        world
            .patch::<ConfigMap>("a", Type::Merge, body)
            .await
            .unwrap();
    }
    let test = json!([{"op": "test", "path": "/data/c", "value": "x"}, {"op": "remove", "path": "/data/c"}]);
    let map = world
        .patch::<ConfigMap>("a", Type::Json, test)
        .await
        .unwrap();
    assert_eq!(map.data.keys().collect::<Vec<_>>(), ["b", "value"]);
}

#[tokio::test]
async fn a_patch_may_insist_on_a_revision() {
    let world = World::start().await;
    let old = world
        .create(&config_map("a", "1"))
        .await
        .unwrap()
        .metadata
        .resource_version;
    let insist =
        |revision: &str| json!({"metadata": {"resourceVersion": revision}, "data": {"value": "2"}});
    world
        .patch::<ConfigMap>("a", Type::Merge, insist(&old))
        .await
        .unwrap();
    let error = world
        .patch::<ConfigMap>("a", Type::Merge, insist(&old))
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
}

#[tokio::test]
async fn a_patch_that_leads_nowhere_good_is_refused() {
    let world = World::start().await;
    world.create(&deployment("web")).await.unwrap();
    let negative = json!({"spec": {"replicas": -1}});
    let error = world
        .patch::<Deployment>("web", Type::Merge, negative)
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::Invalid);
    let wrong = json!({"spec": {"replicas": "two"}});
    let error = world
        .patch::<Deployment>("web", Type::Merge, wrong)
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::BadRequest);
    let error = world
        .patch::<Deployment>("web", Type::Apply, json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::UnsupportedMediaType);
}

#[tokio::test]
async fn a_patch_that_changes_nothing_writes_nothing() {
    let world = World::start().await;
    let web = world.create(&deployment("web")).await.unwrap();
    let same = world
        .patch::<Deployment>("web", Type::Merge, json!({"spec": {"replicas": 1}}))
        .await;
    assert_eq!(same.unwrap(), web);
}

/// Checks K6: a merge patch that names the new type alone, as `kubectl patch` sends it, is enough.
#[tokio::test]
async fn a_service_changes_its_type_and_drops_what_only_the_old_one_needs() {
    let world = World::start().await;
    let mut web = Service::default();
    web.metadata.name = "web".into();
    web.spec.r#type = "NodePort".into();
    web.spec.ports = vec![ServicePort {
        port: 80,
        ..Default::default()
    }];
    let web = world.create(&web).await.unwrap();
    assert!((30_000..32_768).contains(&web.spec.ports[0].node_port));
    let address = web.spec.cluster_ip;

    let to = |r#type: &str| json!({"spec": {"type": r#type, "externalName": "example.com"}});
    let inside: Service = world
        .patch("web", Type::Merge, to("ClusterIP"))
        .await
        .unwrap();
    assert_eq!(inside.spec.ports[0].node_port, 0);
    assert_eq!(inside.spec.cluster_ip, address);
    assert_eq!(inside.spec.external_traffic_policy, "");

    let elsewhere: Service = world
        .patch("web", Type::Merge, to("ExternalName"))
        .await
        .unwrap();
    assert_eq!(elsewhere.spec.cluster_ip, "");
    assert!(elsewhere.spec.cluster_ips.is_empty());
    assert!(elsewhere.spec.ip_families.is_empty());

    let back: Service = world
        .patch("web", Type::Merge, to("NodePort"))
        .await
        .unwrap();
    assert!(back.spec.cluster_ip.starts_with("10.96."));
    assert_ne!(back.spec.ports[0].node_port, 0);
}
