//! Admission of a resize: the node of the Pod must be able to allocate it (upstream: the plugin PodResizeValidator).

use prost::Message as _;
use setpoint_codec::Object;
use setpoint_model::{Key, Resources};
use setpoint_proto::ApiError;
use setpoint_proto::core::{Node, Pod};
use setpoint_proto::meta::StatusCause;

use super::priority;
use crate::kinds::Admitting;
use crate::registry::{Registry, Subresource, Target, errors};

/// Checks that the node of a Pod that is resized runs Linux and could allocate the new requests, if it had no other Pods.
/// `None` for other writes.
///
/// # Errors
/// `Forbidden` if it could not.
pub(crate) fn check<'a>(
    target: &'a Target,
    old: &'a dyn Object,
    new: &'a dyn Object,
    registry: &'a Registry,
) -> Option<Admitting<'a>> {
    if target.subresource != Subresource::Resize {
        return None;
    }
    let (old, new) = (old.downcast_ref::<Pod>()?, new.downcast_ref::<Pod>()?);
    let concerns = !new.spec.node_name.is_empty() && new.spec != old.spec;
    concerns.then(|| Box::pin(check_node(new, target, registry)) as Admitting<'a>)
}

async fn check_node(pod: &Pod, target: &Target, registry: &Registry) -> Result<(), ApiError> {
    let name = &pod.spec.node_name;
    let Some(found) = priority::find::<Node>(&Key::new("", name), registry).await? else {
        let why = format!("node {name:?} not found");
        return Err(errors::forbidden(target, &why, None));
    };
    let node = errors::readable(Node::decode(found.raw.as_ref()))?;
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
