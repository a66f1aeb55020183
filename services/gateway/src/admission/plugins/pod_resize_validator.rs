//! Admission of a resize: the node of the Pod must be able to allocate it (upstream: the plugin PodResizeValidator).

use setpoint_kinds::{Subresource, Target};
use setpoint_model::{Key, Resources};
use setpoint_proto::ApiError;
use setpoint_proto::core::{Node, Pod};
use setpoint_proto::meta::StatusCause;

use super::{Plugin, Step};
use crate::admission::{Attributes, Reader};
use crate::errors;

/// The plugin.
pub(super) struct PodResizeValidator;

impl Plugin for PodResizeValidator {
    /// Checks that the node of a Pod that is resized runs Linux and could allocate the new requests, if it had no other
    /// Pods.
    fn check<'a>(&'a self, request: Attributes<'a>, reader: &'a dyn Reader) -> Option<Step<'a>> {
        if request.target.subresource != Subresource::Resize {
            return None;
        }
        let new = request.object?.downcast_ref::<Pod>()?;
        let old = request.old?.downcast_ref::<Pod>()?;
        let concerns = !new.spec.node_name.is_empty() && new.spec != old.spec;
        concerns.then(|| Box::pin(check_node(new, request.target, reader)) as Step<'a>)
    }
}

async fn check_node(pod: &Pod, target: &Target, reader: &dyn Reader) -> Result<(), ApiError> {
    let name = &pod.spec.node_name;
    let Some(node) = reader.find::<Node>(&Key::new("", name)).await? else {
        let why = format!("node {name:?} not found");
        return Err(errors::forbidden(target, &why, None));
    };
    let checked = check_platform(&node).and_then(|()| check_capacity(pod, &node));
    checked.map_err(|(cause, why)| {
        let cause = StatusCause {
            reason: cause.to_owned(),
            ..StatusCause::default()
        };
        errors::forbidden(target, &why, Some(cause))
    })
}

fn check_platform(node: &Node) -> Result<(), (&'static str, String)> {
    let system = node.metadata.labels.get("kubernetes.io/os");
    match system.map_or("linux", String::as_str) {
        "linux" => Ok(()),
        system => Err((
            "UnsupportedPlatform",
            format!(
                "pod resize is only supported on linux nodes, node {:?} is {system:?}",
                node.metadata.name
            ),
        )),
    }
}

fn check_capacity(pod: &Pod, node: &Node) -> Result<(), (&'static str, String)> {
    let wanted = Resources::of_pod(&pod.spec);
    let has = Resources::of_list(&node.status.allocatable);
    let lacking = [
        ("cpu", wanted.millicpu, has.millicpu),
        ("memory", wanted.memory, has.memory),
    ];
    let lacking = lacking.iter().filter(|(_, wanted, has)| wanted > has);
    let lacking = lacking
        .map(|(name, wanted, has)| format!("{name}, requested: {wanted}, allocatable: {has}"));
    let lacking: Vec<_> = lacking.collect();
    match lacking.is_empty() {
        true => Ok(()),
        false => Err((
            "NodeCapacity",
            format!(
                "node didn't have enough allocatable resources: {}",
                lacking.join("; ")
            ),
        )),
    }
}
