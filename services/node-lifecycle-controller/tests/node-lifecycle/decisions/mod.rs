//! Tests of the pure parts of the two controllers.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod eviction;
mod health;
mod nodes;
mod properties;
mod story;
mod zones;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::View as _;
use setpoint_node_lifecycle_controller::{Lifecycle, NodeView, Signs, World};
use setpoint_proto::core::{Node, NodeCondition, Taint};

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const NOT_READY: &str = "node.kubernetes.io/not-ready";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn condition(kind: &str, status: &str) -> NodeCondition {
    NodeCondition {
        r#type: kind.into(),
        status: status.into(),
        last_heartbeat_time: at(0).into(),
        last_transition_time: at(0).into(),
        ..Default::default()
    }
}

/// Returns a node whose condition `Ready` has this status; none if it is empty.
fn node(name: &str, ready: &str) -> Node {
    let mut node = Node::default();
    node.metadata.name = name.into();
    node.metadata.uid = name.into();
    node.metadata.creation_timestamp = at(-100).into();
    if !ready.is_empty() {
        node.status.conditions = vec![
            condition("MemoryPressure", "False"),
            condition("Ready", ready),
        ];
    }
    node
}

fn taint(key: &str, effect: &str) -> Taint {
    Taint {
        key: key.into(),
        effect: effect.into(),
        ..Default::default()
    }
}

/// Returns the world of a node that was heard this many seconds ago, whose turn it is.
fn world(node: Node, silent_for: u64) -> World {
    World {
        node: Arc::new(NodeView::of(node)),
        signs: Signs::default(),
        silent_for: Duration::from_secs(silent_for),
        outage: false,
        turn: Some(Duration::ZERO),
        ready_pods: Vec::new(),
        settings: Arc::new(Lifecycle::default()),
        now: at(60),
    }
}

/// Returns key and effect of the taints of a node, sorted.
fn taints(taints: &[Taint]) -> Vec<String> {
    let taints = taints.iter();
    let mut texts: Vec<_> = taints
        .map(|taint| format!("{}:{}", taint.key, taint.effect))
        .collect();
    texts.sort();
    texts
}
