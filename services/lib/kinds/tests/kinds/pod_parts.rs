//! The subresources `ephemeralcontainers` and `resize` of Pods.

use serde_json::{Value, json};

use crate::table::Base;

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

#[test]
fn ephemeral_containers() {
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
        ],
    );
}

#[test]
fn resizes() {
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
    );
}
