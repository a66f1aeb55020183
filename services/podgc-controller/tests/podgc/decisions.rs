//! Tests of the pure parts of the podgc-controller.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use setpoint_controller::View as _;
use setpoint_podgc_controller::{Action, NodeState, World, plan, surplus};
use setpoint_proto::core::Pod;
use setpoint_workload::{Phase, PodView};

const QUARANTINE: Duration = Duration::from_secs(40);

fn pod(name: &str, phase: &str, created: i64) -> Pod {
    let mut pod = Pod::default();
    (pod.metadata.name, pod.metadata.uid) = (name.into(), name.into());
    let created = Timestamp::from_second(1_700_000_000 + created).unwrap();
    pod.metadata.creation_timestamp = created.into();
    pod.status.phase = phase.into();
    pod
}

fn world(phase: &str, deleting: bool, node: NodeState, surplus: bool) -> World {
    let mut pod = pod("web", phase, 0);
    pod.metadata.deletion_timestamp = deleting.then(|| Timestamp::UNIX_EPOCH.into());
    pod.metadata.deletion_grace_period_seconds = deleting.then_some(30);
    World {
        pod: Arc::new(PodView::of(pod)),
        node,
        surplus,
        quarantine: QUARANTINE,
    }
}

/// Returns the only action and its reason.
fn only(world: &World) -> Option<(Action, &'static str)> {
    let plan = plan(world);
    assert!(plan.steps.len() < 2);
    let step = plan.steps.into_iter().next()?;
    Some((step.action, step.because))
}

#[test]
fn a_pod_whose_node_is_gone_fails_after_the_quarantine_and_is_deleted() {
    let missing = |seconds| NodeState::Missing(Duration::from_secs(seconds));
    let early = world("Running", false, missing(39), false);
    assert_eq!(only(&early), None);
    assert_eq!(plan(&early).again, Some(Duration::from_secs(1)));
    let because = "its node is gone";
    let (failed, deleted) = (
        Action::MarkFailed { orphaned: true },
        Action::Delete { orphaned: true },
    );
    for (phase, action) in [
        ("Running", failed),
        ("Failed", deleted),
        ("Succeeded", deleted),
    ] {
        let late = world(phase, false, missing(40), false);
        assert_eq!(only(&late), Some((action, because)), "{phase}");
    }
}

#[test]
fn a_pod_that_is_being_deleted_goes_if_no_agent_ends_it() {
    let failed = Action::MarkFailed { orphaned: false };
    let unbound = "it is being deleted and was never bound to a node";
    let out = "it is being deleted, and its node is out of service";
    let decide = |deleting, node| only(&world("Pending", deleting, node, false));
    assert_eq!(decide(true, NodeState::Unbound), Some((failed, unbound)));
    assert_eq!(decide(true, NodeState::OutOfService), Some((failed, out)));
    for (deleting, node) in [
        (false, NodeState::Unbound),
        (false, NodeState::OutOfService),
        (true, NodeState::Exists),
        (false, NodeState::Exists),
    ] {
        assert_eq!(decide(deleting, node), None);
    }
}

#[test]
fn a_pod_that_only_its_finalizers_hold_is_left_to_them() {
    let mut held = world("Failed", true, NodeState::Unbound, true);
    Arc::make_mut(&mut held.pod).released = true;
    assert_eq!(only(&held), None);
}

#[test]
fn the_oldest_ended_pods_beyond_the_threshold_go_and_evicted_ones_first() {
    let mut evicted = pod("evicted", "Failed", 9);
    evicted.status.reason = "Evicted".into();
    let pods = [
        pod("new", "Succeeded", 8),
        pod("running", "Running", 0),
        pod("old-b", "Failed", 1),
        pod("old-a", "Failed", 1),
        evicted,
    ];
    let pods = pods.map(|pod| Arc::new(PodView::of(pod)));
    let chosen = |kept| {
        let chosen = surplus(pods.to_vec(), kept).into_iter();
        chosen
            .map(|pod| pod.meta.key.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(chosen(4), [] as [&str; 0]);
    assert_eq!(chosen(2), ["evicted", "old-a"]);
    assert_eq!(chosen(1), ["evicted", "old-a", "old-b"]);
    assert_eq!(chosen(0), [] as [&str; 0], "all are kept");
    let because = "more Pods have ended than are kept";
    let delete = Action::Delete { orphaned: false };
    let world = world("Succeeded", false, NodeState::Exists, true);
    assert_eq!(only(&world), Some((delete, because)));
}

fn states() -> impl Strategy<Value = NodeState> {
    prop_oneof![
        Just(NodeState::Unbound),
        Just(NodeState::Exists),
        Just(NodeState::OutOfService),
        (0_u64..80).prop_map(|seconds| NodeState::Missing(Duration::from_secs(seconds))),
    ]
}

proptest! {
    #[test]
    fn a_pod_has_ended_before_it_is_deleted_and_one_with_an_agent_is_never_ended(
        phase in prop::sample::select(vec!["Pending", "Running", "Succeeded", "Failed"]),
        deleting in any::<bool>(),
        node in states(),
        chosen in any::<bool>(),
    ) {
        let ended = ["Succeeded", "Failed"].contains(&phase);
        let mut world = world(phase, deleting, node, chosen && ended);
        let first = only(&world).map(|(action, _)| action);
        if node == NodeState::Exists {
            let fails = matches!(first, Some(Action::MarkFailed { .. }));
            prop_assert!(!fails);
        }
        if let Some(Action::MarkFailed { orphaned }) = first {
            prop_assert!(!ended);
            // A crash in between changes nothing.
            Arc::make_mut(&mut world.pod).phase = Phase::Failed;
            let second = only(&world).map(|(action, _)| action);
            prop_assert_eq!(second, Some(Action::Delete { orphaned }));
        }
        if let Some(Action::Delete { .. }) = first {
            prop_assert!(ended);
        }
    }

    #[test]
    fn a_pod_settles_in_two_writes_and_one_that_is_deleted_gets_none(
        phase in prop::sample::select(vec!["Pending", "Running", "Succeeded", "Failed"]),
        deleting in any::<bool>(),
        node in states(),
        chosen in any::<bool>(),
    ) {
        let ended = ["Succeeded", "Failed"].contains(&phase);
        let mut world = world(phase, deleting, node, chosen && ended);
        for _ in 0..2 {
            let action = only(&world).map(|(action, _)| action);
            let pod = Arc::make_mut(&mut world.pod);
            match action {
                None => {}
                Some(Action::MarkFailed { .. }) => pod.phase = Phase::Failed,
                // Deleted without a grace period: it is gone, unless finalizers hold it.
                Some(Action::Delete { .. }) => (pod.meta.deleting, pod.released) = (true, true),
            }
        }
        prop_assert_eq!(only(&world), None);
        Arc::make_mut(&mut world.pod).released = true;
        prop_assert!(plan(&world).is_empty());
    }

    #[test]
    fn the_order_of_the_cache_does_not_matter(
        pods in prop::collection::vec((0_i64..5, any::<bool>()), 0..12).prop_shuffle(),
        kept in 1_usize..12,
    ) {
        let named = pods.iter().enumerate();
        let pods: Vec<_> = named.map(|(index, (created, ended))| {
            let phase = if *ended { "Failed" } else { "Running" };
            Arc::new(PodView::of(pod(&format!("p{index}"), phase, *created)))
        }).collect();
        let names = |pods: Vec<Arc<PodView>>| {
            let chosen = surplus(pods, kept).into_iter();
            chosen.map(|pod| pod.meta.key.name.clone()).collect::<Vec<_>>()
        };
        let chosen = names(pods.clone());
        let ended = pods.iter().filter(|pod| pod.phase.has_ended()).count();
        prop_assert_eq!(chosen.len(), ended.saturating_sub(kept));
        prop_assert_eq!(names(pods.into_iter().rev().collect()), chosen);
    }
}
