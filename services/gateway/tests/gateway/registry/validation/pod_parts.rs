//! The subresources `ephemeralcontainers` and `resize` of Pods.

use serde_json::{Value, json};
use setpoint_proto::core::Pod;
use setpoint_proto::setpoint::patch_request::Type;

use super::table::Base;
use crate::registry::gateway::{TestGateway, pod};

fn base(resources: &Value) -> Base {
    Base {
        resource: "pods",
        object: json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web"},
            "spec": {
                "containers": [{"name": "web", "image": "nginx", "resources": resources}],
                "initContainers": [{"name": "init", "image": "nginx"}],
            },
        }),
    }
}

#[tokio::test]
async fn ephemeral_containers() {
    let web = base(&json!({}));
    let mut sent = web.object.clone();
    sent["spec"]["ephemeralContainers"] = json!([{"name": "debug", "image": "busybox"}]);
    web.written(
        "ephemeralcontainers",
        &sent,
        &[
            ("", ""),
            (
                r#"spec.ephemeralContainers[0].targetContainerName="web""#,
                "",
            ),
            (
                r#"spec.ephemeralContainers[0].targetContainerName="other""#,
                "NotFound spec.ephemeralContainers[0].targetContainerName",
            ),
            (
                r#"spec.ephemeralContainers[0].name="web""#,
                "Duplicate spec.ephemeralContainers[0].name",
            ),
            (
                r#"spec.ephemeralContainers[0].name="""#,
                "Required spec.ephemeralContainers[0].name",
            ),
            (
                r#"spec.ephemeralContainers[0].image="""#,
                "Required spec.ephemeralContainers[0].image",
            ),
            (
                r#"spec.ephemeralContainers[0].ports=[{"containerPort":80}]"#,
                "Forbidden spec.ephemeralContainers[0].ports",
            ),
            (
                r#"spec.ephemeralContainers[0].resources={"requests":{"cpu":"1"}}"#,
                "Forbidden spec.ephemeralContainers[0].resources",
            ),
            (
                r#"spec.ephemeralContainers[0].lifecycle={"preStop":{"exec":{"command":["a"]}}}"#,
                "Forbidden spec.ephemeralContainers[0].lifecycle",
            ),
            // Other changes are ignored.
            (r#"spec.containers[0].image="other""#, ""),
            (r#"metadata.uid="other""#, "Conflict"),
        ],
    )
    .await;
}

#[tokio::test]
async fn ephemeral_containers_are_added_and_stay() {
    let gateway = TestGateway::start().await;
    let mut web = gateway.create(&pod("web")).await.unwrap();
    assert_eq!(web.metadata.generation, 1);
    let debug = json!([{"name": "debug", "image": "busybox"}]);
    web.spec.ephemeral_containers = serde_json::from_value(debug).unwrap();
    web.spec.containers[0].image = "other".into();
    web.metadata.labels = [("a".to_owned(), "b".to_owned())].into();
    let web = gateway
        .update_part("ephemeralcontainers", &web)
        .await
        .unwrap();
    assert_eq!(web.metadata.generation, 2);
    assert_eq!(web.spec.containers[0].image, "nginx:1.25");
    assert!(web.metadata.labels.is_empty());
    let common = &web.spec.ephemeral_containers[0].ephemeral_container_common;
    assert_eq!(common.image_pull_policy, "Always");
    let mut changed = web.clone();
    changed.spec.ephemeral_containers[0]
        .ephemeral_container_common
        .image = "other".into();
    let error = gateway
        .update_part("ephemeralcontainers", &changed)
        .await
        .unwrap_err();
    assert!(error.message.contains("may not be changed"), "{error}");
    changed.spec.ephemeral_containers.clear();
    let error = gateway
        .update_part("ephemeralcontainers", &changed)
        .await
        .unwrap_err();
    assert!(error.message.contains("may not be removed"), "{error}");
    // An update of the whole Pod cannot add any.
    let whole = json!({"spec": {"ephemeralContainers": [{"name": "two", "image": "busybox"}]}});
    let whole = gateway.patch::<Pod>("web", Type::Strategic, whole).await;
    assert!(
        whole
            .unwrap_err()
            .message
            .contains("pod updates may not change fields")
    );
}

#[tokio::test]
async fn resizes() {
    let web = base(&json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}));
    let only = "Forbidden spec";
    web.written(
        "resize",
        &web.object,
        &[
            ("", ""),
            (r#"spec.containers[0].resources={"requests":{"cpu":"500m"},"limits":{"cpu":"3"}}"#, ""),
            (r#"spec.containers[0].image="other""#, ""),
            (
                r#"spec.containers[0].resources={"requests":{"cpu":"3"},"limits":{"cpu":"2"}}"#,
                "Invalid spec.containers[0].resources.requests",
            ),
            (
                r#"spec.containers[0].resources={"requests":{"cpu":"1","ephemeral-storage":"1Gi"},"limits":{"cpu":"2"}}"#,
                only,
            ),
            (
                "spec.containers[0].resources.limits=null",
                "Forbidden spec.containers[0].resources.limits",
            ),
            (
                r#"spec.containers[0].name="other""#,
                "Forbidden spec.containers[0].name",
            ),
            (
                r#"spec.initContainers[0]=null"#,
                "Forbidden spec.initContainers",
            ),
            (
                r#"spec.containers[0].resources={"requests":{"cpu":"2","memory":"1Gi"},"limits":{"cpu":"2","memory":"1Gi"}} ; spec.initContainers[0].resources={"requests":{"cpu":"2","memory":"1Gi"},"limits":{"cpu":"2","memory":"1Gi"}}"#,
                "Invalid spec",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_pod_that_runs_is_resized_only_if_its_node_can_do_that() {
    let gateway = TestGateway::start().await;
    let mut web = pod("web");
    let resources = json!({"requests": {"cpu": "1"}});
    web.spec.containers[0].resources = serde_json::from_value(resources).unwrap();
    let mut web = gateway.create(&web).await.unwrap();
    let status = json!([{"name": "web", "image": "a", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}}]);
    web.status.container_statuses = serde_json::from_value(status).unwrap();
    let mut web = gateway.report(&web).await.unwrap();
    let larger = json!({"requests": {"cpu": "2"}});
    web.spec.containers[0].resources = serde_json::from_value(larger).unwrap();
    let error = gateway.update_part("resize", &web).await.unwrap_err();
    let text = "Pod running on node without support for resize";
    assert!(error.message.contains(text), "{error}");
    web.status.container_statuses[0].resources = Some(Default::default());
    gateway.report(&web).await.unwrap();
    web.metadata.resource_version.clear();
    let web = gateway.update_part("resize", &web).await.unwrap();
    assert_eq!(web.metadata.generation, 2);
    assert_eq!(web.spec.containers[0].resources.requests["cpu"].string, "2");
}
