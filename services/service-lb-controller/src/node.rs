//! The fields of a Node that load balancers depend on.

use std::net::IpAddr;

use setpoint_controller::View;
use setpoint_model::volume::{RUNTIME, SIMULATED};
use setpoint_model::{Meta, condition};
use setpoint_proto::core::Node;

/// The label of nodes that load balancers must not use.
const EXCLUDE: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// The taint of nodes that an autoscaler is about to remove.
const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

/// A Node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeView {
    /// The identity.
    pub meta: Meta,
    /// Its addresses in the cluster, but loopback addresses.
    pub addresses: Vec<IpAddr>,
    /// Whether it may accept connections of load balancers: it is ready, not excluded and not simulated.
    pub accepts: bool,
}

impl NodeView {
    /// Returns whether load balancers are the same with either of two states of a node.
    pub(crate) fn is_same(one: Option<&Self>, other: Option<&Self>) -> bool {
        let content = |node: &Self| (node.addresses.clone(), node.accepts);
        one.map(content) == other.map(content)
    }
}

impl View for NodeView {
    type Object = Node;

    fn of(node: Node) -> Self {
        let internal = node.status.addresses.iter();
        let internal = internal.filter(|one| one.r#type == "InternalIP");
        let addresses = internal.filter_map(|one| one.address.parse().ok());
        let reached = |ip: &IpAddr| !ip.is_loopback() && !ip.is_unspecified();
        Self {
            meta: Meta::identity(&node.metadata),
            accepts: accepts(&node),
            addresses: addresses.filter(reached).collect(),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

fn accepts(node: &Node) -> bool {
    let labels = &node.metadata.labels;
    let simulated = labels
        .get(RUNTIME)
        .is_some_and(|runtime| runtime == SIMULATED);
    let taints = &node.spec.taints;
    let leaves = taints.iter().any(|taint| taint.key == TO_BE_DELETED);
    let excluded = labels.contains_key(EXCLUDE);
    condition::is_true(&node.status.conditions, "Ready") && !simulated && !leaves && !excluded
}
