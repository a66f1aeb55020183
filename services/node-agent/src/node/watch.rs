//! Watches the Node objects of this process for the resources that others add to them, such as devices.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use setpoint_controller::client::ListOptions;
use setpoint_controller::{Client, Informer, View};
use setpoint_model::Meta;
use setpoint_model::quantity::Amount;
use setpoint_proto::core;
use setpoint_proto::meta::Quantity;
use tokio::sync::Notify;

use super::{Node, OWN};
use crate::node::admission::Admission;

/// Wakes the heartbeat of each node, by its name.
pub type Wakes = HashMap<String, Arc<Notify>>;

/// The resources that others have added to a Node.
pub struct NodeView {
    meta: Meta,
    /// The amounts that Pods can be given, by name.
    allocatable: BTreeMap<String, i64>,
    /// Whether the capacity has the same amounts.
    is_current: bool,
    /// The range of the addresses of its Pods; empty until it has one.
    range: String,
}

impl View for NodeView {
    type Object = core::Node;

    fn of(node: core::Node) -> Self {
        let allocatable = added(&node.status.allocatable);
        Self {
            meta: Meta::of(&node.metadata),
            is_current: allocatable == added(&node.status.capacity),
            allocatable,
            range: node.spec.pod_cidr,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

fn added(resources: &BTreeMap<String, Quantity>) -> BTreeMap<String, i64> {
    let others = resources
        .iter()
        .filter(|(name, _)| !OWN.contains(&name.as_str()));
    let amount = |quantity: &Quantity| Amount::parse(&quantity.string).map_or(0, Amount::value);
    others
        .map(|(name, quantity)| (name.clone(), amount(quantity)))
        .collect()
}

/// Tells the range of the addresses of Pods of a node, once it has one.
pub type Ranges = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// Returns an informer over these nodes, which tells the admission what others have added to them, `ranges` the
/// addresses of their Pods, and wakes a heartbeat if what was added is not allocatable yet.
pub fn informer(
    gateway: &Client,
    nodes: &[Node],
    admission: Arc<Admission>,
    ranges: Ranges,
    wakes: Arc<Wakes>,
) -> Informer<NodeView> {
    let fields = match nodes {
        [node] => format!("metadata.name={}", node.name),
        _ => String::new(),
    };
    let only = ListOptions {
        fields,
        ..ListOptions::default()
    };
    gateway
        .informer::<NodeView>()
        .only(only)
        .on_event(move |delta| {
            let Some(node) = &delta.new else { return };
            let name = &node.meta.key.name;
            let Some(wake) = wakes.get(name) else { return };
            admission.set_added(name, node.allocatable.clone());
            if !node.range.is_empty() {
                ranges(name, &node.range);
            }
            if !node.is_current {
                wake.notify_one();
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_added_is_current_once_it_is_allocatable() {
        let list = |amounts: &[(&str, &str)]| {
            let amounts = amounts.iter();
            let amounts =
                amounts.map(|(name, amount)| ((*name).to_owned(), Quantity::new(*amount)));
            amounts.collect::<BTreeMap<_, _>>()
        };
        let mut node = core::Node::default();
        node.status.capacity = list(&[("cpu", "4"), ("example.com/gpu", "2")]);
        node.status.allocatable = list(&[("cpu", "3"), ("example.com/gpu", "1")]);
        let view = NodeView::of(node.clone());
        assert!(!view.is_current);
        assert_eq!(view.allocatable, [("example.com/gpu".to_owned(), 1)].into());
        node.status.allocatable = list(&[("cpu", "3"), ("example.com/gpu", "2")]);
        assert!(NodeView::of(node.clone()).is_current);
        node.status.capacity = list(&[("cpu", "4")]);
        assert!(!NodeView::of(node).is_current, "it is gone");
    }
}
