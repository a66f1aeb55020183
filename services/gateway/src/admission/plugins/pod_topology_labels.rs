//! The labels of a Pod that say where its node is (upstream: the admission plugin PodTopologyLabels). Containers read them by
//! the downward API.

use std::collections::BTreeMap;

use setpoint_codec::kind_of;
use setpoint_model::Key;
use setpoint_proto::ApiError;
use setpoint_proto::core::{Binding, Node, Pod};

use crate::registry::{AtLeast, Registry};

const LABELS: [&str; 2] = [
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// Sets the labels of a Pod that is created on a node.
pub(super) async fn label_pod(pod: &mut Pod, registry: &Registry) -> Result<(), ApiError> {
    if !pod.spec.node_name.is_empty() {
        let labels = of_node(&pod.spec.node_name, registry).await?;
        pod.metadata.labels.extend(labels);
    }
    Ok(())
}

/// Sets the labels of a binding, from which the Pod gets them. As upstream, the binding must name the kind of its target.
pub(crate) async fn label_binding(
    binding: &mut Binding,
    registry: &Registry,
) -> Result<(), ApiError> {
    let target = &binding.target;
    if target.kind == "Node" {
        let labels = of_node(&target.name, registry).await?;
        binding.metadata.labels.extend(labels);
    }
    Ok(())
}

/// Returns the labels of a node; none if there is no such node, as upstream.
async fn of_node(name: &str, registry: &Registry) -> Result<BTreeMap<String, String>, ApiError> {
    let key = Key::new("", name);
    let cached = registry.cache().get(kind_of::<Node>(), &key, AtLeast::Any);
    let Some(node) = cached.await? else {
        return Ok(BTreeMap::new());
    };
    let labels = node.labels();
    let label = |name: &str| Some((name.to_owned(), labels.get(name)?.clone()));
    Ok(LABELS.into_iter().filter_map(label).collect())
}
