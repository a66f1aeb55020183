//! The minimal app that the benchmarks deploy.

use setpoint_proto::core::{Container, PodSpec, PodTemplateSpec};
use setpoint_proto::meta::{LabelSelector, ObjectMeta};

/// Metadata of its Deployment or ReplicaSet.
pub fn metadata(name: &str) -> ObjectMeta {
    ObjectMeta {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        ..Default::default()
    }
}

/// The selector of its Pods.
pub fn selector(name: &str) -> LabelSelector {
    LabelSelector {
        match_labels: [label(name)].into(),
        ..Default::default()
    }
}

/// The template of its Pods.
pub fn template(name: &str) -> PodTemplateSpec {
    PodTemplateSpec {
        metadata: ObjectMeta {
            labels: [label(name)].into(),
            ..Default::default()
        },
        spec: PodSpec {
            containers: vec![Container {
                name: "app".to_owned(),
                image: "app:1".to_owned(),
                ..Default::default()
            }],
            ..Default::default()
        },
    }
}

fn label(name: &str) -> (String, String) {
    ("app".to_owned(), name.to_owned())
}
