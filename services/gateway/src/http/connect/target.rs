//! The Pod that a client connects to, and its node.

use setpoint_codec::{Kind, kind_of};
use setpoint_proto::core::{Container, EphemeralContainer, Node, Pod};
use setpoint_proto::{ApiError, Reason, Resource};
use setpoint_store::cache::AtLeast;

use crate::registry::{Registry, RequestContext, Target, errors};

/// Reads an object.
///
/// # Errors
/// `NotFound`.
pub(super) async fn read<T: Resource + prost::Message + Default>(
    registry: &Registry,
    context: &RequestContext,
    namespace: &str,
    name: &str,
) -> Result<T, ApiError> {
    let kind: &'static Kind = kind_of::<T>();
    let target = Target::new(kind, namespace, name, "")?;
    let found = registry.get(context, &target, AtLeast::Newest).await?;
    errors::readable(T::decode(found.raw))
}

/// Returns the node of a Pod.
///
/// # Errors
/// `BadRequest` if the Pod has no node.
pub(super) async fn node_of(
    registry: &Registry,
    context: &RequestContext,
    pod: &Pod,
) -> Result<Node, ApiError> {
    let node = pod.spec.node_name.as_str();
    if node.is_empty() {
        let name = &pod.metadata.name;
        let message = format!("pod {name} does not have a host assigned");
        return Err(ApiError::new(Reason::BadRequest, message));
    }
    read(registry, context, "", node).await
}

/// Returns the name of the container to connect to, by default the only one.
///
/// # Errors
/// `BadRequest` if there is no such container, or the name is missing.
pub(super) fn container(pod: &Pod, named: &str) -> Result<String, ApiError> {
    let (spec, name) = (&pod.spec, &pod.metadata.name);
    let bad = |message: String| Err(ApiError::new(Reason::BadRequest, message));
    let name_of = |container: &Container| container.name.clone();
    let ephemeral =
        |container: &EphemeralContainer| container.ephemeral_container_common.name.clone();
    let all: Vec<String> = (spec.init_containers.iter().map(name_of))
        .chain(spec.containers.iter().map(name_of))
        .chain(spec.ephemeral_containers.iter().map(ephemeral))
        .collect();
    match (named, spec.containers.as_slice()) {
        ("", [only]) => Ok(only.name.clone()),
        ("", _) => bad(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            all.join(" ")
        )),
        (named, _) if all.iter().any(|one| one == named) => Ok(named.to_owned()),
        (named, _) => bad(format!("container {named} is not valid for pod {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(init: &[&str], main: &[&str]) -> Pod {
        let containers = |names: &[&str]| {
            let container = |name: &&str| Container {
                name: (*name).into(),
                ..Container::default()
            };
            names.iter().map(container).collect()
        };
        let mut pod = Pod::default();
        pod.metadata.name = "web".into();
        (pod.spec.init_containers, pod.spec.containers) = (containers(init), containers(main));
        pod
    }

    #[test]
    fn the_only_container_needs_no_name() {
        let found = |init: &[&str], main: &[&str], named: &str| {
            container(&pod(init, main), named).map_err(|error| error.message)
        };
        assert_eq!(found(&["i"], &["a"], ""), Ok("a".into()));
        assert_eq!(found(&["i"], &["a"], "i"), Ok("i".into()));
        assert_eq!(
            found(&["i"], &["a", "b"], ""),
            Err("a container name must be specified for pod web, choose one of: [i a b]".into())
        );
        assert_eq!(
            found(&[], &["a"], "b"),
            Err("container b is not valid for pod web".into())
        );
    }
}
