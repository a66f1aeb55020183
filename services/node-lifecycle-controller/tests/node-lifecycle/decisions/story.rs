//! Plans as text, for readers: a node falls silent, its Pods leave, and it comes back.

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use setpoint_controller::View as _;
use setpoint_model::{Key, Target};
use setpoint_node_lifecycle_controller::{
    Action, EvictionWorld, NodeView, PodView, plan, plan_eviction,
};
use setpoint_proto::core::{Pod, Toleration};

use super::*;

/// Executes a plan on the node of a world.
fn execute(world: &mut World) {
    let steps = plan(world).steps;
    let node = Arc::make_mut(&mut world.node);
    for step in steps {
        match step.action {
            Action::MarkUnknown(unknown) => {
                let mut status = super::node("a", "");
                status.status.conditions = unknown.0;
                status.spec.taints.clone_from(&node.taints);
                *node = NodeView::of(status);
            }
            Action::Taint(change) => node.taints = change.apply(&node.taints),
            Action::Label(_) | Action::MarkPodNotReady(_) => {}
        }
    }
}

/// Checks N6.
#[test]
fn a_node_that_falls_silent_is_marked_and_tainted_until_it_answers_again() {
    let mut world = world(node("a", "True"), 49);
    world.turn = Some(Duration::from_secs(7));
    world.ready_pods = vec![Target {
        key: Key::new("default", "web"),
        ..Target::default()
    }];
    expect![[r#"
        MarkPodNotReady(default/web) because the agent of its node does not answer
    "#]]
    .assert_eq(&plan(&world).to_string());
    world.silent_for = Duration::from_secs(50);
    expect![[r#"
        MarkUnknown({"MemoryPressure": "Unknown", "Ready": "Unknown", "DiskPressure": "Unknown", "PIDPressure": "Unknown"}) because neither its Lease nor its status was renewed within the grace period
    "#]].assert_eq(&plan(&world).to_string());
    execute(&mut world);
    expect![[r#"
        Taint(+node.kubernetes.io/unreachable:NoSchedule) because its conditions call for other taints
        MarkPodNotReady(default/web) because the agent of its node does not answer
        look again after 7s
    "#]].assert_eq(&plan(&world).to_string());
    execute(&mut world);
    world.ready_pods.clear();
    world.turn = Some(Duration::ZERO);
    expect![[r#"
        Taint(+node.kubernetes.io/unreachable:NoExecute) because its agent does not answer: its Pods have to leave
    "#]].assert_eq(&plan(&world).to_string());
    execute(&mut world);
    expect![].assert_eq(&plan(&world).to_string());
    world.outage = true;
    expect![[r#"
        Taint(-node.kubernetes.io/unreachable:NoExecute) because no node of any zone is ready: the fault may be on the way to them
    "#]].assert_eq(&plan(&world).to_string());
    world.outage = false;
    let mut back = node("a", "True");
    back.spec.taints.clone_from(&world.node.taints);
    world.node = Arc::new(NodeView::of(back));
    world.silent_for = Duration::ZERO;
    expect![[r#"
        Taint(-node.kubernetes.io/unreachable:NoSchedule -node.kubernetes.io/unreachable:NoExecute) because it is ready again
    "#]].assert_eq(&plan(&world).to_string());
}

#[test]
fn a_pod_on_a_tainted_node_leaves_when_its_toleration_ends() {
    let mut pod = Pod::default();
    (pod.metadata.name, pod.spec.node_name) = ("web".into(), "a".into());
    pod.spec.tolerations.push(Toleration {
        key: UNREACHABLE.into(),
        operator: "Exists".into(),
        toleration_seconds: Some(300),
        ..Default::default()
    });
    let mut world = EvictionWorld {
        pod: Arc::new(PodView::of(pod)),
        taints: vec![taint(UNREACHABLE, "NoExecute")],
        waited: None,
    };
    expect![[r#"
        look again after 300s
    "#]]
    .assert_eq(&plan_eviction(&world).to_string());
    world.waited = Some(Duration::from_secs(299));
    expect![[r#"
        look again after 1s
    "#]]
    .assert_eq(&plan_eviction(&world).to_string());
    world.waited = Some(Duration::from_secs(300));
    expect![[r#"
        MarkDisrupted because it has tolerated a taint of its node for as long as it may
    "#]]
    .assert_eq(&plan_eviction(&world).to_string());
    Arc::make_mut(&mut world.pod).disrupted = true;
    expect![[r#"
        Delete because it has tolerated a taint of its node for as long as it may
    "#]]
    .assert_eq(&plan_eviction(&world).to_string());
    world.taints.push(taint("example.com/gpu", "NoExecute"));
    world.waited = None;
    expect![[r#"
        Delete because its node has a taint that it does not tolerate
    "#]]
    .assert_eq(&plan_eviction(&world).to_string());
    world.taints.clear();
    world.waited = Some(Duration::from_secs(200));
    expect![[r#"
        Cancel because the taints of its node are gone
    "#]]
    .assert_eq(&plan_eviction(&world).to_string());
}
