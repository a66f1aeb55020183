//! Nominated nodes: the room that is reserved for Pods whose victims leave.

use std::sync::Arc;

use setpoint_scheduler::Action;

use crate::preemption::{high, on, small};
use crate::world::{bindings, plan, pod, world};

/// Checks C7: a Pod that is nominated is bound to that node as soon as it fits.
#[test]
fn the_nominated_node_is_taken_first() {
    let nodes = [small("a"), small("b").has("cpu", "8")];
    let placed = [on("a", "other", "100m", 1)];
    let snapshot = world(&nodes, &placed, &[high("500m").nominated("a")]);
    assert_eq!(bindings(&snapshot), [("high".into(), "a".into())]);
    let elsewhere = world(&nodes, &placed, &[high("2").nominated("a")]);
    assert_eq!(bindings(&elsewhere), [("high".into(), "b".into())]);
}

/// Checks C7: room that is reserved is not given to Pods of lower priority, but to those of higher priority.
#[test]
fn reserved_room_counts_for_pods_of_lower_priority() {
    let reserved = || {
        Arc::new(
            pod("reserved")
                .cpu("800m")
                .priority(10)
                .nominated("a")
                .view(),
        )
    };
    let with = |priority: i32| {
        let incoming = pod("incoming").cpu("500m").priority(priority);
        let mut snapshot = world(&[small("a")], &[], &[incoming]);
        snapshot.nominated = vec![reserved()];
        snapshot
    };
    for (priority, bound) in [(9, 0), (10, 0), (11, 1)] {
        assert_eq!(bindings(&with(priority)).len(), bound, "{priority}");
    }
    // Affinity to a Pod that is only nominated is not satisfied.
    let mut loving = world(
        &[small("a")],
        &[],
        &[pod("p").cpu("1m").near("host", "foo")],
    );
    let loved = pod("loved").labels("foo").priority(10).nominated("a");
    loving.nominated = vec![Arc::new(loved.view())];
    assert!(bindings(&loving).is_empty());
    // Anti-affinity of it is.
    let mut repelled = world(&[small("a")], &[], &[pod("p").cpu("1m").labels("foo")]);
    let repelling = pod("r").away("host", "foo").priority(10).nominated("a");
    repelled.nominated = vec![Arc::new(repelling.view())];
    assert!(bindings(&repelled).is_empty());
}

/// Checks C7: a Pod that preempts takes over the reservations of Pods of lower priority, which look elsewhere.
#[test]
fn reservations_of_pods_of_lower_priority_are_withdrawn() {
    let placed = [on("a", "low", "900m", 1)];
    let mut snapshot = world(&[small("a")], &placed, &[high("500m")]);
    let lower = pod("lower").cpu("500m").priority(10).nominated("a");
    let equal = pod("equal").cpu("100m").priority(1000).nominated("a");
    let higher = pod("higher").cpu("100m").priority(2000).nominated("a");
    let nominated = [lower, equal, higher].map(|pod| Arc::new(pod.view()));
    snapshot.nominated = nominated.into();
    let steps = plan(&snapshot).steps.into_iter();
    let withdrawn = steps.filter_map(|step| match step.action {
        Action::Withdraw { nominated, .. } => Some(nominated.meta.key.name.clone()),
        _ => None,
    });
    assert_eq!(withdrawn.collect::<Vec<_>>(), ["lower"]);
}

/// Checks C7: without hope of room a Pod's reservation ends, for the other Pods of the plan, too; a Pod that may not
/// preempt keeps it.
#[test]
fn a_reservation_ends_when_preemption_is_of_no_use() {
    let low = pod("low").cpu("400m");
    let hopeless = [high("2").nominated("a"), low.clone()];
    let snapshot = world(&[small("a")], &[], &hopeless);
    assert_eq!(bindings(&snapshot), [("low".into(), "a".into())]);
    let never = high("800m").with(|spec| spec.preemption_policy = Some("Never".into()));
    let placed = [on("a", "equal", "500m", 1000)];
    let snapshot = world(&[small("a")], &placed, &[never.nominated("a"), low]);
    assert!(bindings(&snapshot).is_empty());
}
