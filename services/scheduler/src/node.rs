//! The scheduler's view of a node.

use std::collections::{BTreeMap, HashMap};

use setpoint_controller::View;
use setpoint_model::volume::local_folder;
use setpoint_model::{Meta, Resources, condition, quantity::Amount};
use setpoint_proto::core::{Node, NodeStatus, Taint};

/// The taint that upstream's node-lifecycle controller sets on nodes that do not report; derived from the Ready
/// condition.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The fields of a node that the scheduler reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeView {
    /// The metadata and labels.
    pub meta: Meta,
    /// The allocatable resources.
    pub allocatable: Resources,
    /// The maximum number of Pods.
    pub max_pods: i64,
    /// Whether it is cordoned.
    pub unschedulable: bool,
    /// Taints with the effect NoSchedule or NoExecute.
    pub taints: Vec<Taint>,
    /// Taints with the effect PreferNoSchedule.
    pub discouraging: Vec<Taint>,
    /// The images that it has, with their sizes in bytes, by each of their names.
    pub images: HashMap<String, i64>,
}

impl View for NodeView {
    type Object = Node;

    fn of(node: Node) -> Self {
        let ready = condition::is_true(&node.status.conditions, "Ready");
        let pods = node.status.allocatable.get("pods");
        let max_pods = pods.and_then(|pods| Amount::parse(&pods.string).ok());
        let soft = |taint: &Taint| taint.effect == "PreferNoSchedule";
        let (discouraging, mut taints): (Vec<_>, Vec<_>) =
            node.spec.taints.into_iter().partition(soft);
        if !ready && taints.iter().all(|taint| taint.key != NOT_READY) {
            taints.push(not_ready());
        }
        Self {
            meta: Meta::of(&node.metadata),
            allocatable: Resources::of_list(&node.status.allocatable),
            max_pods: max_pods.map_or(0, |amount| amount.value()),
            unschedulable: node.spec.unschedulable,
            taints,
            discouraging,
            images: images(&node.status),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

fn images(status: &NodeStatus) -> HashMap<String, i64> {
    let images = status.images.iter();
    images
        .flat_map(|image| {
            image
                .names
                .iter()
                .map(|name| (name.clone(), image.size_bytes))
        })
        .collect()
}

fn not_ready() -> Taint {
    Taint {
        key: NOT_READY.to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Default::default()
    }
}

impl NodeView {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.meta.key.name
    }

    /// Returns the labels.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.meta.labels
    }

    /// Returns whether filters may decide otherwise than on `earlier`. False for a heartbeat.
    pub fn differs_from(&self, earlier: &Self) -> bool {
        (self.unschedulable, &self.taints) != (earlier.unschedulable, &earlier.taints)
            || (&self.allocatable, self.max_pods) != (&earlier.allocatable, earlier.max_pods)
            || self.labels() != earlier.labels()
            || local_folder(&self.meta) != local_folder(&earlier.meta)
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{NodeCondition, NodeSpec};
    use setpoint_proto::meta::Quantity;

    use super::*;

    fn taint(key: &str, effect: &str) -> Taint {
        Taint {
            key: key.into(),
            effect: effect.into(),
            ..Default::default()
        }
    }

    fn node(ready: &str, taints: Vec<Taint>) -> NodeView {
        let amounts = [("cpu", "2"), ("memory", "1Gi"), ("pods", "110")];
        let amounts = amounts.map(|(name, amount)| (name.to_owned(), Quantity::new(amount)));
        let ready = NodeCondition {
            r#type: "Ready".into(),
            status: ready.into(),
            ..Default::default()
        };
        NodeView::of(Node {
            spec: NodeSpec {
                taints,
                ..Default::default()
            },
            status: NodeStatus {
                allocatable: amounts.into(),
                conditions: vec![ready],
                ..Default::default()
            },
            ..Default::default()
        })
    }

    #[test]
    fn hard_taints_keep_away_and_soft_ones_discourage() {
        let taints = vec![taint("a", "NoSchedule"), taint("b", "PreferNoSchedule")];
        let node = node("True", taints);
        assert_eq!(node.taints, [taint("a", "NoSchedule")]);
        assert_eq!(node.discouraging, [taint("b", "PreferNoSchedule")]);
        assert_eq!((node.max_pods, node.allocatable.millicpu), (110, 2000));
    }

    /// Checks C8: a node that is not Ready counts as tainted, with or without the taint.
    #[test]
    fn a_node_that_is_not_ready_is_tainted_once() {
        let tainted = [not_ready()];
        assert_eq!(node("Unknown", Vec::new()).taints, tainted);
        assert_eq!(node("False", vec![not_ready()]).taints, tainted);
        assert_eq!(node("True", Vec::new()).taints, []);
        assert_eq!(
            not_ready(),
            taint("node.kubernetes.io/not-ready", "NoSchedule")
        );
    }

    /// Checks C6: a change that may let a Pod fit wakes it, a heartbeat does not.
    #[test]
    fn a_node_differs_when_something_that_filters_look_at_has_changed() {
        let before = node("True", Vec::new());
        assert!(!before.clone().differs_from(&before));
        let changed = |change: fn(&mut NodeView)| {
            let mut after = before.clone();
            change(&mut after);
            after.differs_from(&before)
        };
        assert!(changed(|node| node.unschedulable = true));
        assert!(changed(|node| node.taints.push(not_ready())));
        assert!(changed(|node| node.allocatable.memory = 5));
        assert!(changed(|node| node.max_pods = 5));
        assert!(changed(|node| {
            node.meta.labels.insert("zone".into(), "a".into());
        }));
        assert!(!changed(|node| node.meta.generation = 7));
    }
}
