//! The plan for one node.

use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::{Plan, View as _};
use setpoint_model::{Key, Target};
use setpoint_node_lifecycle_controller::{Action, NodeView, World, plan};
use setpoint_proto::core::Node;

use super::*;

/// Returns the only action of a plan, and its reason.
fn only(plan: Plan<Action>) -> (Action, &'static str) {
    let [step] = plan.steps.try_into().unwrap();
    (step.action, step.because)
}

/// Returns the taints of a node after the plan for it; `None` if the plan has nothing else than taints to change, and
/// none of them.
fn tainted(world: &World) -> Option<Vec<String>> {
    let plan = plan(world);
    let step = plan.steps.into_iter().next()?;
    match step.action {
        Action::Taint(change) => Some(taints(&change.apply(&world.node.taints))),
        other => panic!("{other:?}"),
    }
}

fn with_taints(mut node: Node, taints: &[(&str, &str)]) -> Node {
    let taints = taints.iter().map(|(key, effect)| taint(key, effect));
    node.spec.taints = taints.collect();
    node
}

fn both(key: &str) -> Vec<String> {
    vec![format!("{key}:NoExecute"), format!("{key}:NoSchedule")]
}

/// Checks N6.
#[test]
fn a_node_that_is_silent_for_the_grace_period_has_unknown_conditions() {
    assert!(plan(&world(node("a", "True"), 49)).is_empty());
    let (action, because) = only(plan(&world(node("a", "True"), 50)));
    let Action::MarkUnknown(conditions) = action else {
        panic!("{action:?}");
    };
    assert_eq!(
        because,
        "neither its Lease nor its status was renewed within the grace period"
    );
    let found = conditions
        .0
        .iter()
        .map(|one| (&*one.r#type, &*one.status, &*one.reason, &*one.message));
    let stopped = ("NodeStatusUnknown", "Kubelet stopped posting node status.");
    let never = (
        "NodeStatusNeverUpdated",
        "Kubelet never posted node status.",
    );
    let expected = [
        ("MemoryPressure", "Unknown", stopped.0, stopped.1),
        ("Ready", "Unknown", stopped.0, stopped.1),
        ("DiskPressure", "Unknown", never.0, never.1),
        ("PIDPressure", "Unknown", never.0, never.1),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    let ready = &conditions.0[1];
    assert_eq!(ready.last_heartbeat_time, at(0).into(), "that of the agent");
    assert_eq!(ready.last_transition_time, at(60).into());
}

#[test]
fn a_node_without_a_status_has_the_startup_grace_period() {
    assert!(plan(&world(node("a", ""), 59)).is_empty());
    let (action, because) = only(plan(&world(node("a", ""), 60)));
    let Action::MarkUnknown(conditions) = action else {
        panic!("{action:?}");
    };
    assert_eq!(because, "its agent has never posted a status");
    assert_eq!(conditions.0.len(), 4);
    for one in conditions.0 {
        let found = (&*one.status, &*one.reason);
        assert_eq!(found, ("Unknown", "NodeStatusNeverUpdated"));
        assert_eq!(one.last_heartbeat_time, at(-100).into());
    }
}

#[test]
fn a_node_that_is_not_ready_is_tainted_and_one_that_is_again_is_not() {
    let silent = |status| world(silenced(status), 60);
    assert_eq!(tainted(&silent("Unknown")), Some(both(UNREACHABLE)));
    let (_, because) = only(plan(&silent("Unknown")));
    assert_eq!(because, "its agent does not answer: its Pods have to leave");
    assert_eq!(
        tainted(&world(node("a", "False"), 0)),
        Some(both(NOT_READY))
    );

    let kept = ("example.com/gpu", "NoExecute");
    let healthy = with_taints(
        node("a", "True"),
        &[
            kept,
            (UNREACHABLE, "NoSchedule"),
            (UNREACHABLE, "NoExecute"),
        ],
    );
    let healthy = world(healthy, 0);
    assert_eq!(only(plan(&healthy)).1, "it is ready again");
    assert_eq!(
        tainted(&healthy),
        Some(vec!["example.com/gpu:NoExecute".into()])
    );
}

/// Returns a node of which all conditions are unknown or have this status.
fn silenced(ready: &str) -> Node {
    let mut node = node("a", "");
    let kinds = ["MemoryPressure", "DiskPressure", "PIDPressure"];
    let unknown = kinds.map(|kind| condition(kind, "Unknown"));
    node.status.conditions = unknown.into();
    node.status.conditions.push(condition("Ready", ready));
    node
}

#[test]
fn conditions_and_a_cordon_have_taints_that_go_with_them() {
    let mut pressed = node("a", "True");
    for (kind, status) in [
        ("DiskPressure", "True"),
        ("PIDPressure", "Unknown"),
        ("NetworkUnavailable", "True"),
    ] {
        pressed.status.conditions.push(condition(kind, status));
    }
    pressed.spec.unschedulable = true;
    pressed = with_taints(
        pressed,
        &[("node.kubernetes.io/memory-pressure", "NoSchedule")],
    );
    let world = world(pressed, 0);
    let expected = [
        "node.kubernetes.io/disk-pressure:NoSchedule",
        "node.kubernetes.io/network-unavailable:NoSchedule",
        "node.kubernetes.io/unschedulable:NoSchedule",
    ];
    assert_eq!(tainted(&world).unwrap(), expected);
    assert_eq!(only(plan(&world)).1, "its conditions call for other taints");
}

#[test]
fn taints_that_evict_wait_for_their_turn_and_others_do_not() {
    let mut waiting = world(node("a", "False"), 0);
    let only_schedule = Some(vec![format!("{NOT_READY}:NoSchedule")]);
    waiting.turn = Some(Duration::from_secs(7));
    assert_eq!(tainted(&waiting), only_schedule);
    assert_eq!(plan(&waiting).again, Some(Duration::from_secs(7)));
    waiting.turn = None;
    assert_eq!(tainted(&waiting), only_schedule);
    assert_eq!(plan(&waiting).again, None);

    // One taint is replaced by the other at once.
    let mut node = silenced("Unknown");
    node = with_taints(
        node,
        &[(NOT_READY, "NoExecute"), (UNREACHABLE, "NoSchedule")],
    );
    waiting.node = Arc::new(NodeView::of(node));
    assert_eq!(tainted(&waiting), Some(both(UNREACHABLE)));
}

#[test]
fn a_node_that_was_heard_since_has_the_full_grace_period() {
    let heard = world(silenced("Unknown"), 1);
    let expected = Some(vec![format!("{UNREACHABLE}:NoSchedule")]);
    assert_eq!(tainted(&heard), expected);
}

#[test]
fn no_pod_has_to_leave_while_no_node_is_ready() {
    let node = with_taints(
        silenced("Unknown"),
        &[(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")],
    );
    let mut outage = world(node, 600);
    assert!(plan(&outage).is_empty());
    outage.outage = true;
    let expected = Some(vec![format!("{UNREACHABLE}:NoSchedule")]);
    assert_eq!(tainted(&outage), expected);
    let because = "no node of any zone is ready: the fault may be on the way to them";
    assert_eq!(only(plan(&outage)).1, because);
}

#[test]
fn pods_of_a_node_that_does_not_answer_are_not_ready() {
    let mut world = world(silenced("Unknown"), 60);
    let pod = Target {
        key: Key::new("default", "web"),
        ..Target::default()
    };
    world.ready_pods = vec![pod.clone()];
    let plan = plan(&world);
    let last = plan.steps.last().unwrap();
    assert_eq!(last.action, Action::MarkPodNotReady(pod));
    assert_eq!(last.because, "the agent of its node does not answer");
}

#[test]
fn labels_have_their_former_names_too() {
    let mut linux = node("a", "True");
    let labels = [
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "arm64"),
        ("beta.kubernetes.io/arch", "amd64"),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    linux.metadata.labels = labels.into();
    let (Action::Label(missing), _) = only(plan(&world(linux, 0))) else {
        panic!("another action");
    };
    let expected = [
        ("beta.kubernetes.io/arch", "arm64"),
        ("beta.kubernetes.io/os", "linux"),
    ];
    let missing = missing.iter().map(|(name, value)| (&**name, &**value));
    assert_eq!(missing.collect::<Vec<_>>(), expected);
}
