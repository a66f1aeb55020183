//! Signs of life.

use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::View as _;
use setpoint_node_lifecycle_controller::{Health, LeaseView, NodeView};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::Node;

use super::{at, node};

fn lease(renewed: i64) -> LeaseView {
    let mut lease = Lease::default();
    lease.spec.renew_time = Some(at(renewed).into());
    LeaseView::of(lease)
}

/// Observes a node and returns the seconds for which it has been silent.
fn silence(health: &mut Health, node: &Node, lease: Option<&LeaseView>, now: u64) -> u64 {
    let now = Duration::from_secs(now);
    health.observe(&NodeView::of(node.clone()), lease, now);
    let (_, silent) = health.last(&node.metadata.name, now);
    silent.as_secs()
}

/// Checks N6: the clocks of the agents do not matter.
#[test]
fn a_node_is_heard_when_its_lease_or_its_heartbeat_changes_whatever_they_say() {
    let (mut health, mut node) = (Health::default(), node("a", "True"));
    let old = lease(-9_000);
    assert_eq!(
        silence(&mut health, &node, Some(&old), 100),
        0,
        "first seen"
    );
    assert_eq!(silence(&mut health, &node, Some(&old), 140), 40);
    let older = lease(-9_001);
    assert_eq!(silence(&mut health, &node, Some(&older), 141), 0);
    assert_eq!(silence(&mut health, &node, Some(&older), 151), 10);
    node.status.conditions[1].last_heartbeat_time = at(-7_000).into();
    assert_eq!(silence(&mut health, &node, Some(&older), 152), 0);
    node.status.conditions[0].last_heartbeat_time = at(9_000).into();
    assert_eq!(silence(&mut health, &node, Some(&older), 155), 3);
    node.metadata.uid = "another node of the name".into();
    assert_eq!(silence(&mut health, &node, None, 160), 0);
}

#[test]
fn all_nodes_have_the_full_grace_period_after_an_outage() {
    let (mut health, node) = (Health::default(), node("a", "True"));
    silence(&mut health, &node, None, 0);
    assert_eq!(silence(&mut health, &node, None, 300), 300);
    health.renew(Duration::from_secs(300));
    assert_eq!(silence(&mut health, &node, None, 301), 1);
}

#[test]
fn nodes_that_are_gone_are_forgotten() {
    let (mut health, gone, kept) = (Health::default(), node("a", "True"), node("b", "True"));
    silence(&mut health, &gone, None, 0);
    silence(&mut health, &kept, None, 0);
    health.keep(&[Arc::new(NodeView::of(kept.clone()))]);
    assert_eq!(silence(&mut health, &kept, None, 7), 7);
    assert_eq!(silence(&mut health, &gone, None, 7), 0);
}
