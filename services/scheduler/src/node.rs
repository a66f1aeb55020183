//! What the scheduler keeps of a node.

use std::collections::BTreeMap;

use setpoint_machinery::View;
use setpoint_model::{Meta, Resources, condition, quantity::Amount};
use setpoint_proto::core::{Node, Taint};

/// Set by upstream's node-lifecycle controller on nodes that do not report; taken from the Ready condition here.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// A node as the scheduler sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeView {
    /// Its identity and labels.
    pub meta: Meta,
    /// What Pods may take of it.
    pub allocatable: Resources,
    /// How many Pods it takes.
    pub max_pods: i64,
    /// Cordoned.
    pub unschedulable: bool,
    /// Taints that keep new Pods away.
    pub taints: Vec<Taint>,
    /// Taints (`PreferNoSchedule`) for which other nodes are better.
    pub discouraging: Vec<Taint>,
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
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

fn not_ready() -> Taint {
    Taint {
        key: NOT_READY.to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Default::default()
    }
}

impl NodeView {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.meta.key.name
    }

    /// Its labels.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.meta.labels
    }

    /// May Pods that did not fit on `earlier` fit now? A heartbeat says no.
    pub fn offers_more_than(&self, earlier: &Self) -> bool {
        (self.unschedulable, &self.taints) != (earlier.unschedulable, &earlier.taints)
            || (&self.allocatable, self.max_pods) != (&earlier.allocatable, earlier.max_pods)
            || self.labels() != earlier.labels()
    }
}
