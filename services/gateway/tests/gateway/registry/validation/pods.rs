//! Pods, which name other objects.

use serde_json::json;

use super::table::Base;

fn pod() -> Base {
    Base {
        resource: "pods",
        object: json!({
            "metadata": {"name": "web"},
            "spec": {
                "containers": [
                    {"name": "web", "image": "nginx"},
                    {"name": "log", "image": "nginx"},
                ],
                "initContainers": [{"name": "init", "image": "nginx"}],
                "volumes": [
                    {"name": "data", "emptyDir": {}},
                    {"name": "claim", "persistentVolumeClaim": {"claimName": "claim"}},
                ],
            },
        }),
    }
}

/// Checks K18 and F19: the objects that a Pod names must exist.
#[tokio::test]
async fn named_objects() {
    pod()
        .created(&[
            (r#"spec.serviceAccountName="default""#, ""),
            (r#"spec.serviceAccountName="nobody""#, "Forbidden"),
            (r#"spec.serviceAccount="nobody""#, "Forbidden"),
            (
                r#"spec.priorityClassName="nobody-defined-this""#,
                "Forbidden",
            ),
            (r#"spec.priorityClassName="system-node-critical""#, ""),
            (
                r#"spec.priorityClassName="system-node-critical" ; spec.priority=5"#,
                "Forbidden",
            ),
            // Checks U1.
            ("spec.priority=0", ""),
            ("spec.priority=1", "Forbidden"),
            (r#"spec.preemptionPolicy="Never""#, "Forbidden"),
            (r#"spec.runtimeClassName="gvisor""#, "Forbidden"),
            (r#"spec.overhead={"cpu":"1"}"#, "Forbidden"),
        ])
        .await;
}
