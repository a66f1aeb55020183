//! The app that is deployed over and over: the least that a Pod can be.

use setpoint_proto::core::{Container, PodSpec, PodTemplateSpec};
use setpoint_proto::meta::{LabelSelector, ObjectMeta};

/// Of the object that keeps its Pods.
pub fn metadata(name: &str) -> ObjectMeta {
    ObjectMeta {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        ..Default::default()
    }
}

/// Finds its Pods.
pub fn selector(name: &str) -> LabelSelector {
    LabelSelector {
        match_labels: [label(name)].into(),
        ..Default::default()
    }
}

/// What each of its Pods is like.
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
