//! The plan for one Pod on a tainted node: worked examples, and a property over waits, taints and crashes.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use setpoint_controller::View as _;
use setpoint_node_lifecycle_controller::{
    EvictionAction as Action, EvictionWorld as World, PodView, plan_eviction as plan,
};
use setpoint_proto::core::{Pod, PodCondition, Toleration};

use super::{UNREACHABLE, taint};

/// Returns a Pod that tolerates the taint for this time; `None` for a Pod that tolerates all taints.
fn pod(seconds: Option<i64>) -> Pod {
    let mut pod = Pod::default();
    (pod.metadata.name, pod.spec.node_name) = ("web".into(), "a".into());
    pod.spec.tolerations.push(Toleration {
        key: seconds.map_or("", |_| UNREACHABLE).into(),
        operator: "Exists".into(),
        toleration_seconds: seconds,
        ..Default::default()
    });
    pod
}

fn world(pod: Pod, keys: &[&str], waited: Option<u64>) -> World {
    World {
        pod: Arc::new(PodView::of(pod)),
        taints: keys.iter().map(|key| taint(key, "NoExecute")).collect(),
        waited: waited.map(Duration::from_secs),
    }
}

/// Returns the only action and its reason, and the seconds after which it is looked at again.
fn decided(world: &World) -> (Option<(Action, &'static str)>, Option<u64>) {
    let plan = plan(world);
    assert!(plan.steps.len() < 2);
    let step = plan.steps.into_iter().next();
    let step = step.map(|step| (step.action, step.because));
    (step, plan.again.map(|again| again.as_secs()))
}

#[test]
fn a_pod_stays_for_as_long_as_it_tolerates_the_taint() {
    let unreachable = [UNREACHABLE];
    let over = "it has tolerated a taint of its node for as long as it may";
    let waited = |waited| decided(&world(pod(Some(300)), &unreachable, waited));
    assert_eq!(waited(None), (None, Some(300)));
    assert_eq!(waited(Some(299)), (None, Some(1)));
    let marked = (Action::MarkDisrupted, over);
    assert_eq!(waited(Some(300)), (Some(marked), None));
    assert_eq!(decided(&world(pod(None), &unreachable, None)), (None, None));
}

#[test]
fn a_pod_that_does_not_tolerate_a_taint_is_marked_then_deleted() {
    let because = "its node has a taint that it does not tolerate";
    let taints = [UNREACHABLE, "example.com/gpu"];
    let mut world = world(pod(Some(300)), &taints, None);
    let marked = Some((Action::MarkDisrupted, because));
    assert_eq!(decided(&world), (marked, None));
    Arc::make_mut(&mut world.pod).disrupted = true;
    assert_eq!(decided(&world), (Some((Action::Delete, because)), None));
    Arc::make_mut(&mut world.pod).meta.deleting = true;
    assert_eq!(decided(&world), (None, None));
}

#[test]
fn a_pod_whose_node_loses_the_taint_stays_and_its_user_is_told() {
    let gone = world(pod(Some(300)), &[], Some(200));
    let cancel = (Action::Cancel, "the taints of its node are gone");
    assert_eq!(decided(&gone), (Some(cancel), None));
    let tolerated = world(pod(None), &[UNREACHABLE], Some(200));
    let cancel = (Action::Cancel, "it tolerates the taints of its node");
    assert_eq!(decided(&tolerated), (Some(cancel), None));
    assert_eq!(decided(&world(pod(Some(300)), &[], None)), (None, None));
}

#[test]
fn a_pod_is_marked_by_a_condition_that_holds_and_has_the_reason_of_taints() {
    for (kind, status, reason, marked) in [
        ("DisruptionTarget", "True", "DeletionByTaintManager", true),
        ("DisruptionTarget", "False", "DeletionByTaintManager", false),
        ("DisruptionTarget", "True", "PreemptionByScheduler", false),
        ("Ready", "True", "DeletionByTaintManager", false),
    ] {
        let mut pod = pod(None);
        pod.status.conditions.push(PodCondition {
            r#type: kind.into(),
            status: status.into(),
            reason: reason.into(),
            ..Default::default()
        });
        let view = PodView::of(pod);
        assert_eq!(view.disrupted, marked, "{kind} {status} {reason}");
        assert_eq!(view.ready, kind == "Ready");
    }
}

#[test]
fn a_pod_is_found_by_its_node_and_keeps_the_tolerations_that_evictions_depend_on() {
    let mut bound = pod(None);
    let effects = ["", "NoExecute", "NoSchedule"];
    bound.spec.tolerations = effects
        .map(|effect| Toleration {
            effect: effect.into(),
            ..Default::default()
        })
        .into();
    let view = PodView::of(bound.clone());
    assert_eq!(view.tag(), Some("a"));
    let kept = view.tolerations.iter().map(|one| one.effect.as_str());
    assert_eq!(kept.collect::<Vec<_>>(), effects[..2]);
    bound.spec.node_name.clear();
    assert_eq!(PodView::of(bound).tag(), None);
}

proptest! {
    /// A crash, of which the next leader remembers nothing, restarts the wait. It may happen before and after each
    /// write.
    #[test]
    fn a_pod_leaves_only_after_its_toleration_and_then_for_good(
        limit in 1_i64..20,
        seconds in prop::collection::vec((any::<bool>(), prop::bool::weighted(0.1)), 1..80),
    ) {
        let (mut world, mut tainted_for) = (world(pod(Some(limit)), &[], None), 0);
        for (tainted, crashes) in seconds {
            world.taints = [taint(UNREACHABLE, "NoExecute")].into_iter().filter(|_| tainted).collect();
            tainted_for = if tainted { tainted_for + 1 } else { 0 };
            let waited = world.waited.map(|waited| waited + Duration::from_secs(1));
            world.waited = match (tainted, crashes) {
                (true, true) => Some(Duration::ZERO),
                (true, false) => Some(waited.unwrap_or_default()),
                (false, true) => None,
                (false, false) => waited,
            };
            match decided(&world).0.map(|(action, _)| action) {
                None => {}
                Some(Action::Cancel) => world.waited = None,
                Some(Action::MarkDisrupted) => {
                    prop_assert!(tainted_for > limit);
                    Arc::make_mut(&mut world.pod).disrupted = true;
                }
                Some(Action::Delete) => {
                    prop_assert!(tainted_for > limit);
                    Arc::make_mut(&mut world.pod).meta.deleting = true;
                    prop_assert!(plan(&world).is_empty());
                    break;
                }
            }
            prop_assert!(tainted || world.waited.is_none());
        }
    }

    #[test]
    fn the_order_of_taints_does_not_matter(
        keys in prop::collection::vec(prop::sample::select(vec![UNREACHABLE, "a", "b"]), 0..4).prop_shuffle(),
        limits in prop::collection::vec(prop::option::of(0_i64..9), 0..3),
        waited in prop::option::of(0_u64..9),
    ) {
        let mut pod = pod(Some(5));
        pod.spec.tolerations.extend(limits.iter().zip(["a", "b"]).map(|(limit, key)| Toleration {
            key: key.into(),
            operator: "Exists".into(),
            toleration_seconds: *limit,
            ..Default::default()
        }));
        let reversed: Vec<_> = keys.iter().rev().copied().collect();
        let (one, other) = (world(pod.clone(), &keys, waited), world(pod, &reversed, waited));
        prop_assert_eq!(decided(&one), decided(&other));
    }
}
