//! Properties of the plan for a node, over random nodes, rates and crashes.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use setpoint_controller::View as _;
use setpoint_node_lifecycle_controller::{Action, NodeView, World, plan};
use setpoint_proto::core::Node;

use super::*;

const KEYS: [&str; 5] = [
    UNREACHABLE,
    NOT_READY,
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/unschedulable",
    "example.com/gpu",
];

fn nodes() -> impl Strategy<Value = Node> {
    let status = prop::sample::select(vec!["", "True", "False", "Unknown"]);
    let pressure = prop::sample::select(vec!["True", "False", "Unknown"]);
    let effect = prop::sample::select(vec!["NoSchedule", "NoExecute"]);
    let taints = prop::collection::btree_set((prop::sample::select(KEYS.to_vec()), effect), 0..6);
    (status, pressure, any::<bool>(), taints).prop_map(|(status, pressure, cordoned, taints)| {
        let mut node = node("a", status);
        let condition = condition("DiskPressure", pressure);
        node.status.conditions.push(condition);
        node.spec.unschedulable = cordoned;
        node.spec.taints = taints
            .iter()
            .map(|(key, effect)| taint(key, effect))
            .collect();
        node
    })
}

fn worlds() -> impl Strategy<Value = World> {
    let turn = prop::option::of(prop::sample::select(vec![0_u64, 3]));
    let silent = prop::sample::select(vec![0_u64, 49, 50, 600]);
    (nodes(), silent, any::<bool>(), turn).prop_map(|(node, silent, outage, turn)| World {
        outage,
        turn: turn.map(Duration::from_secs),
        ..world(node, silent)
    })
}

fn apply(world: &mut World, action: Action) {
    let node = Arc::make_mut(&mut world.node);
    match action {
        Action::MarkUnknown(conditions) => node.conditions = conditions.0,
        Action::Taint(change) => node.taints = change.apply(&node.taints),
        Action::Label(_) => node.missing_labels.clear(),
        Action::MarkPodNotReady(_) => world.ready_pods.clear(),
    }
}

fn has(world: &World, key: &str, effect: &str) -> bool {
    let mut taints = world.node.taints.iter();
    taints.any(|one| one.key == key && one.effect == effect)
}

fn foreign(world: &World) -> Vec<String> {
    let mut own = world.node.taints.clone();
    own.retain(|one| {
        let lasting = one.key == UNREACHABLE || one.key == NOT_READY;
        one.key == KEYS[4] || (one.effect == "NoExecute" && !lasting)
    });
    taints(&own)
}

proptest! {
    /// Each write is a plan of its own, so that a crash after any of them leaves a state that is among these.
    #[test]
    fn a_node_settles_in_two_writes_with_the_taints_of_its_state(mut world in worlds()) {
        let kept = foreign(&world);
        let executed_before = has(&world, UNREACHABLE, "NoExecute") || has(&world, NOT_READY, "NoExecute");
        for _ in 0..2 {
            let steps = plan(&world).steps;
            prop_assert!(steps.len() <= 1, "writes of one object in one plan: {steps:?}");
            steps.into_iter().for_each(|step| apply(&mut world, step.action));
        }
        prop_assert!(plan(&world).is_empty(), "{:?}", plan(&world));
        prop_assert_eq!(foreign(&world), kept);
        let status = world.node.conditions.iter().find(|one| one.r#type == "Ready").map(|one| &*one.status);
        prop_assert_eq!(has(&world, NOT_READY, "NoSchedule"), status == Some("False"));
        prop_assert_eq!(has(&world, UNREACHABLE, "NoSchedule"), status == Some("Unknown"));
        prop_assert_eq!(has(&world, KEYS[3], "NoSchedule"), world.node.unschedulable);
        let executed = has(&world, UNREACHABLE, "NoExecute") || has(&world, NOT_READY, "NoExecute");
        if matches!(status, Some("True")) || (world.outage && status.is_some()) {
            prop_assert!(!executed);
        }
        if world.turn != Some(Duration::ZERO) {
            prop_assert!(executed_before || !executed, "not its turn");
        }
    }

    #[test]
    fn the_order_of_conditions_and_taints_does_not_matter(node in nodes(), silent in 0_u64..100) {
        let mut reversed = node.clone();
        reversed.status.conditions.reverse();
        reversed.spec.taints.reverse();
        let settled = |node: Node| {
            let mut world = world(node, silent);
            for _ in 0..2 {
                plan(&world).steps.into_iter().for_each(|step| apply(&mut world, step.action));
            }
            taints(&world.node.taints)
        };
        prop_assert_eq!(settled(node), settled(reversed));
    }
}

#[test]
fn a_heartbeat_is_no_change_that_matters() {
    let view = |node: &Node| NodeView::of(node.clone());
    let before = node("a", "True");
    let mut after = before.clone();
    after.status.conditions[1].last_heartbeat_time = at(10).into();
    after.metadata.resource_version = "9".into();
    assert!(!view(&before).differs(&view(&after)));
    after.status.conditions[1].status = "False".into();
    assert!(view(&before).differs(&view(&after)));
}

#[test]
fn whatever_a_decision_depends_on_is_a_change_that_matters() {
    let before = NodeView::of(node("a", "True"));
    let changes: [fn(&mut NodeView); 7] = [
        |node| node.meta.uid = "another".into(),
        |node| node.zone = "/b".into(),
        |node| node.excluded = true,
        |node| node.unschedulable = true,
        |node| node.taints.push(taint("gpu", "NoSchedule")),
        |node| _ = node.missing_labels.insert("a".into(), "b".into()),
        |node| node.conditions.clear(),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut after = before.clone();
        change(&mut after);
        assert!(before.differs(&after), "change {index}");
    }
}
