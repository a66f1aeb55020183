//! Tests of the pure parts of the disruption-controller, with cases of upstream's tests.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use setpoint_controller::View;
use setpoint_disruption_controller::{BudgetView, Scales, World, plan, status, warning};
use setpoint_model::condition;
use setpoint_proto::core::{Pod, PodCondition};
use setpoint_proto::meta::{IntOrString, LabelSelector};
use setpoint_proto::policy::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use setpoint_workload::PodView;

const SECOND: i64 = 1_700_000_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(SECOND + second).unwrap()
}

fn pod(index: usize, ready: bool) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = format!("web-{index}");
    pod.metadata.namespace = "default".into();
    pod.status.phase = "Running".into();
    pod.status.conditions.push(PodCondition {
        r#type: "Ready".into(),
        status: if ready { "True" } else { "False" }.into(),
        last_transition_time: at(-60).into(),
        ..Default::default()
    });
    pod
}

/// The amount of a budget.
#[derive(Clone, Debug)]
enum Amount {
    Min(IntOrString),
    Max(IntOrString),
    None,
}

fn budget(amount: &Amount) -> PodDisruptionBudget {
    let mut budget = PodDisruptionBudget::default();
    (budget.metadata.name, budget.metadata.namespace) = ("web".into(), "default".into());
    budget.metadata.generation = 3;
    budget.spec.selector = Some(LabelSelector::default());
    match amount {
        Amount::Min(least) => budget.spec.min_available = Some(least.clone()),
        Amount::Max(most) => budget.spec.max_unavailable = Some(most.clone()),
        Amount::None => {}
    }
    budget
}

/// Returns a world with `ready` healthy Pods and one that is not, whose controllers want `replicas`.
fn world(amount: &Amount, ready: usize, replicas: i32) -> World {
    let pods = (0..=ready).map(|index| Arc::new(PodView::of(pod(index, index < ready))));
    World {
        budget: Arc::new(BudgetView::of(budget(amount))),
        pods: pods.collect(),
        scales: Ok(Scales {
            replicas,
            unmanaged: false,
        }),
        now: at(0),
    }
}

/// Returns the world after this status was written.
fn written(mut world: World, status: PodDisruptionBudgetStatus) -> World {
    Arc::make_mut(&mut world.budget).status = status;
    world
}

/// Returns expected, desired and current healthy Pods, and the allowed disruptions.
fn counts(status: &PodDisruptionBudgetStatus) -> [i32; 4] {
    [
        status.expected_pods,
        status.desired_healthy,
        status.current_healthy,
        status.disruptions_allowed,
    ]
}

#[test]
fn a_budget_allows_what_its_amount_leaves() {
    let number = |number| IntOrString::int(number);
    let part = IntOrString::string;
    let cases = [
        (Amount::Min(number(3)), 3, 10, [4, 3, 3, 0]),
        (Amount::Min(number(1)), 3, 10, [4, 1, 3, 2]),
        (Amount::Min(part("28%")), 3, 10, [10, 3, 3, 0]),
        (Amount::Min(part("20%")), 3, 10, [10, 2, 3, 1]),
        (Amount::Min(part("67%")), 3, 3, [3, 3, 3, 0]),
        (Amount::Max(number(1)), 4, 5, [5, 4, 4, 0]),
        (Amount::Max(number(2)), 4, 5, [5, 3, 4, 1]),
        (Amount::Max(number(9)), 4, 5, [5, 0, 4, 4]),
        (Amount::Max(part("30%")), 10, 10, [10, 7, 10, 3]),
        (Amount::Max(part("1%")), 10, 10, [10, 9, 10, 1]),
        (Amount::Max(part("0%")), 10, 10, [10, 10, 10, 0]),
        (Amount::Max(number(1)), 4, 0, [0, 0, 4, 0]),
        (Amount::None, 4, 5, [0, 0, 4, 0]),
    ];
    for (amount, ready, replicas, expected) in cases {
        let status = status(&world(&amount, ready, replicas)).unwrap();
        assert_eq!(counts(&status), expected);
        let allowed = condition::get(&status.conditions, "DisruptionAllowed").unwrap();
        let sufficient = ("True", "SufficientPods");
        let wanted = match expected[3] {
            0 => ("False", "InsufficientPods"),
            _ => sufficient,
        };
        assert_eq!((&*allowed.status, &*allowed.reason), wanted);
        assert_eq!(
            (allowed.observed_generation, status.observed_generation),
            (3, 3)
        );
    }
}

#[test]
fn a_budget_without_pods_allows_nothing_and_says_so() {
    let mut empty = world(&Amount::Min(IntOrString::int(0)), 0, 0);
    empty.pods.clear();
    assert_eq!(counts(&status(&empty).unwrap()), [0, 0, 0, 0]);
}

#[test]
fn an_evicted_pod_does_not_count_until_its_deletion_is_overdue() {
    let mut world = world(&Amount::Min(IntOrString::int(1)), 3, 0);
    let evicted = |name: &str, second| (name.to_owned(), at(second).into());
    Arc::make_mut(&mut world.budget).status.disrupted_pods = BTreeMap::from([
        evicted("web-0", -30),
        evicted("web-1", -121),
        evicted("long-gone", -10),
    ]);
    let reported = status(&world).unwrap();
    assert_eq!(counts(&reported), [4, 1, 2, 1]);
    assert_eq!(
        reported.disrupted_pods.keys().collect::<Vec<_>>(),
        ["web-0"]
    );
    assert_eq!(plan(&world).again, Some(Duration::from_secs(90)));
    let mut later = written(world, reported);
    later.now = at(90);
    assert_eq!(counts(&status(&later).unwrap()), [4, 1, 3, 2]);
    assert_eq!(plan(&later).again, None);
}

#[test]
fn pods_that_are_deleted_or_not_ready_do_not_count() {
    let mut world = world(&Amount::Min(IntOrString::int(0)), 3, 0);
    let mut deleted = pod(0, true);
    deleted.metadata.deletion_timestamp = Some(at(0).into());
    world.pods[0] = Arc::new(PodView::of(deleted));
    assert_eq!(counts(&status(&world).unwrap()), [4, 0, 2, 2]);
}

#[test]
fn scales_that_are_not_known_allow_nothing_and_are_read_again() {
    let amount = Amount::Max(IntOrString::int(1));
    let known = world(&amount, 5, 5);
    let reported = status(&known).unwrap();
    assert_eq!(reported.disruptions_allowed, 1);
    let mut unknown = written(known, reported);
    unknown.scales = Err("found no controllers for pod \"web-0\"".into());
    let refusing = status(&unknown).unwrap();
    assert_eq!(counts(&refusing), [5, 4, 5, 0]);
    let allowed = condition::get(&refusing.conditions, "DisruptionAllowed").unwrap();
    assert_eq!(
        (&*allowed.status, &*allowed.reason, &*allowed.message),
        (
            "False",
            "SyncFailed",
            "found no controllers for pod \"web-0\""
        )
    );
    assert_eq!(
        warning(&unknown).unwrap().1,
        "Failed to calculate the number of expected pods: found no controllers for pod \"web-0\""
    );
    assert_eq!(plan(&unknown).again, Some(Duration::from_secs(15)));
    assert_eq!(status(&written(unknown, refusing)), None);
}

#[test]
fn pods_without_a_controller_are_warned_of() {
    let mut world = world(&Amount::Max(IntOrString::string("50%")), 2, 0);
    world.scales = Ok(Scales {
        replicas: 0,
        unmanaged: true,
    });
    assert_eq!(counts(&status(&world).unwrap()), [0, 0, 2, 0]);
    assert_eq!(warning(&world).unwrap().0, "UnmanagedPods");
}

fn amounts() -> impl Strategy<Value = Amount> {
    let amount = prop_oneof![
        any::<i32>().prop_map(IntOrString::int),
        (0..=100).prop_map(|percent| IntOrString::string(format!("{percent}%"))),
    ];
    prop_oneof![
        amount.clone().prop_map(Amount::Min),
        amount.prop_map(Amount::Max),
        Just(Amount::None),
    ]
}

proptest! {
    #[test]
    fn a_status_is_written_once_and_never_allows_more_than_is_healthy(
        amount in amounts(),
        ready in 0_usize..6,
        replicas in any::<i32>(),
        evicted in -300_i64..300,
    ) {
        let mut world = world(&amount, ready, replicas);
        let disrupted = BTreeMap::from([("web-0".to_owned(), at(evicted).into())]);
        Arc::make_mut(&mut world.budget).status.disrupted_pods = disrupted;
        let reported = status(&world).unwrap();
        let [_, desired, healthy, allowed] = counts(&reported);
        prop_assert!(allowed >= 0);
        prop_assert!(allowed == 0 || i64::from(allowed) <= i64::from(healthy) - i64::from(desired));
        prop_assert_eq!(status(&written(world, reported)), None);
    }
}
