//! The labels of a Pod that say where its node is (upstream: the admission plugin PodTopologyLabels). Containers read
//! them by the downward API.

use std::collections::BTreeMap;

use setpoint_codec::{Object, kind_of};
use setpoint_model::Key;
use setpoint_proto::ApiError;
use setpoint_proto::core::{Binding, Node, Pod};
use setpoint_store::cache::AtLeast;

use super::{Plugin, Step};
use crate::admission::{Attributes, Operation, Reader};

const LABELS: [&str; 2] = [
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// The plugin.
pub(super) struct PodTopologyLabels;

impl Plugin for PodTopologyLabels {
    fn admit<'a>(
        &'a self,
        request: Attributes<'a>,
        object: &'a mut dyn Object,
        reader: &'a dyn Reader,
    ) -> Option<Step<'a>> {
        if request.operation != Operation::Create {
            return None;
        }
        let node = node_of(object)?.to_owned();
        Some(Box::pin(async move {
            let labels = of_node(&node, reader).await?;
            object.meta_mut().labels.extend(labels);
            Ok(())
        }))
    }
}

/// Returns the node of a Pod that is created on one, or of a binding, from which the Pod gets the labels. As upstream,
/// the binding must name the kind of its target.
fn node_of(object: &dyn Object) -> Option<&str> {
    if let Some(pod) = object.downcast_ref::<Pod>() {
        return Some(pod.spec.node_name.as_str()).filter(|node| !node.is_empty());
    }
    let target = &object.downcast_ref::<Binding>()?.target;
    (target.kind == "Node").then_some(target.name.as_str())
}

/// Returns the labels of a node; none if there is no such node, as upstream.
async fn of_node(name: &str, reader: &dyn Reader) -> Result<BTreeMap<String, String>, ApiError> {
    let key = Key::new("", name);
    let cached = reader.get(kind_of::<Node>(), &key, AtLeast::Any);
    let Some(node) = cached.await? else {
        return Ok(BTreeMap::new());
    };
    let labels = node.labels();
    let label = |name: &str| Some((name.to_owned(), labels.get(name)?.clone()));
    Ok(LABELS.into_iter().filter_map(label).collect())
}
