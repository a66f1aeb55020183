//! The subresources `scale` and `binding`.

use serde_json::json;

use super::table::Base;

#[tokio::test]
async fn scales() {
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "nginx"}]},
    });
    let scale = json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "web"},
        "spec": {"replicas": 1},
    });
    for resource in ["deployments.apps", "replicasets.apps"] {
        let base = Base {
            resource,
            object: json!({
                "metadata": {"name": "web"},
                "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
            }),
        };
        base.written(
            "scale",
            &scale,
            &[
                ("", ""),
                ("spec.replicas=10", ""),
                ("spec.replicas=0", ""),
                ("spec=null", ""),
                ("spec.replicas=100", ""),
                ("spec.replicas=-1", "Invalid spec.replicas"),
                ("status.replicas=-1", ""),
                (r#"metadata.name="other""#, "BadRequest"),
                (r#"metadata.namespace="other""#, "BadRequest"),
                (
                    r#"metadata.uid="{uid}" ; metadata.resourceVersion="{revision}""#,
                    "",
                ),
                (r#"metadata.uid="other""#, "Conflict"),
                (r#"metadata.resourceVersion="1""#, "Conflict"),
                (r#"metadata.labels={"a b":"c"}"#, "Invalid metadata.labels"),
                (
                    r#"metadata.annotations={"a b":"c"} ; spec.replicas=-1"#,
                    "Invalid metadata.annotations, Invalid spec.replicas",
                ),
            ],
        )
        .await;
    }
}

#[tokio::test]
async fn bindings() {
    let pod = Base {
        resource: "pods",
        object: json!({
            "metadata": {"name": "web"},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]},
        }),
    };
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "web"},
        "target": {"name": "node-1"},
    });
    pod.written(
        "binding",
        &binding,
        &[
            ("", ""),
            (r#"target.kind="Node""#, ""),
            (r#"target.kind="unknown""#, "BadRequest"),
            ("target=null", "BadRequest"),
            (r#"target.name="""#, "BadRequest"),
            (r#"metadata.name="other""#, "BadRequest"),
            (r#"metadata.namespace="other""#, "BadRequest"),
            (
                r#"metadata.uid="{uid}" ; metadata.resourceVersion="{revision}""#,
                "",
            ),
            (r#"metadata.uid="{uid}""#, ""),
            (r#"metadata.resourceVersion="{revision}""#, ""),
            (
                r#"metadata.uid="{uid}" ; metadata.resourceVersion="{revision}-changed""#,
                "Conflict",
            ),
            (
                r#"metadata.resourceVersion="{revision}-changed""#,
                "Conflict",
            ),
            (
                r#"metadata.uid="{uid}-changed" ; metadata.resourceVersion="{revision}""#,
                "Conflict",
            ),
            (r#"metadata.uid="{uid}-changed""#, "Conflict"),
            (
                r#"metadata.uid="{uid}-changed" ; metadata.resourceVersion="{revision}-changed""#,
                "Conflict",
            ),
        ],
    )
    .await;
}
