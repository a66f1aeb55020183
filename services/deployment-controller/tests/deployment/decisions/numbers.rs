//! Tests of extreme and invalid numbers in specs, statuses and annotations.

use crate::decisions::cluster::{Cluster, REVISION};
use proptest::prelude::*;
use setpoint_controller::Outcome;
use setpoint_deployment_controller::{Action, plan, status};
use setpoint_proto::apps::RollingUpdateDeployment;
use setpoint_proto::meta::IntOrString;

const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";

fn numbers() -> impl Strategy<Value = i32> {
    prop_oneof![Just(i32::MIN), Just(i32::MAX), -2..3_i32, any::<i32>()]
}

fn shares() -> impl Strategy<Value = Option<IntOrString>> {
    let percent = |number: i32| IntOrString::string(format!("{number}%"));
    prop_oneof![
        numbers().prop_map(IntOrString::int).prop_map(Some),
        numbers().prop_map(percent).prop_map(Some),
        Just(Some(IntOrString::string("many"))),
        Just(None),
    ]
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        numbers().prop_map(|number| number.to_string()),
        Just("9223372036854775807".to_owned()),
        Just("+5".to_owned()),
        ".{0,9}",
    ]
}

proptest! {
    /// Checks D1.
    #[test]
    fn no_number_makes_plan_panic_or_scale_below_zero(
        spec in (numbers(), numbers(), numbers(), numbers(), shares(), shares()),
        counts in prop::collection::vec((numbers(), numbers(), numbers(), numbers(), any::<i64>()), 2),
        annotations in prop::collection::vec((texts(), texts(), texts(), texts()), 2),
        flags in (any::<bool>(), any::<bool>(), numbers()),
    ) {
        let mut cluster = Cluster::settled(3, 1, 0);
        cluster.set_image("next");
        cluster.reconcile(usize::MAX);
        let (replicas, seconds, deadline, limit, surge, unavailable) = spec;
        let (paused, recreate, collisions) = flags;
        cluster.edit(|spec| {
            spec.replicas = Some(replicas);
            spec.min_ready_seconds = seconds;
            spec.progress_deadline_seconds = Some(deadline);
            spec.revision_history_limit = Some(limit);
            spec.paused = paused;
            spec.strategy.rolling_update = Some(RollingUpdateDeployment {
                max_surge: surge,
                max_unavailable: unavailable,
            });
            if recreate {
                spec.strategy.r#type = "Recreate".into();
            }
        });
        cluster.deployment.status.collision_count = Some(collisions);
        let values = counts.into_iter().zip(annotations);
        for (simulated, (count, annotation)) in cluster.sets.values_mut().zip(values) {
            let (spec, replicas, available, terminating, observed) = count;
            let set = &mut simulated.set;
            set.spec.replicas = Some(spec);
            set.status.replicas = replicas;
            set.status.ready_replicas = available;
            set.status.available_replicas = available;
            set.status.terminating_replicas = Some(terminating);
            set.status.observed_generation = observed;
            let (desired, max, revision, history) = annotation;
            let annotations = [(DESIRED, desired), (MAX, max), (REVISION, revision), (HISTORY, history)];
            let annotations = annotations.map(|(name, value)| (name.to_owned(), value));
            set.metadata.annotations.extend(annotations);
        }
        let world = cluster.world();
        for step in plan(&world).steps {
            if let Action::Scale { to, .. } | Action::Create { replicas: to, .. } = step.action {
                prop_assert!(to >= 0, "{to} Pods");
            }
        }
        status(&world, &Outcome::of(plan(&world)));
    }
}

fn annotated(name: &str, value: &str) -> Cluster {
    let mut cluster = Cluster::settled(2, 1, 0);
    let set = &mut cluster.sets.values_mut().next().unwrap().set;
    set.metadata.annotations.insert(name.into(), value.into());
    cluster
}

/// Rolls back to the first template; returns the history of its set.
fn history_after_a_rollback(before: &str) -> String {
    let mut cluster = annotated(HISTORY, before);
    let first = cluster.sets.keys().next().unwrap().clone();
    cluster.set_image("next");
    cluster.settle();
    cluster.set_image("");
    cluster.settle();
    cluster.sets[&first].set.metadata.annotations[HISTORY].clone()
}

/// Checks F33: as upstream, the oldest revisions are dropped.
#[test]
fn the_revision_history_is_limited_to_2000_bytes() {
    assert_eq!(history_after_a_rollback(""), "1");
    assert_eq!(history_after_a_rollback("7,8"), "7,8,1");
    let full = vec!["1234"; 399].join(",");
    assert_eq!(
        history_after_a_rollback(&format!("{full},abc")),
        format!("{full},abc,1"),
        "2000 bytes"
    );
    let longer = format!("{full},abc1");
    assert_eq!(
        history_after_a_rollback(&longer),
        format!("{},1", &longer[5..])
    );
    assert_eq!(history_after_a_rollback(&"x".repeat(5_000)), "1");
}

/// Checks F33.
#[test]
fn an_invalid_revision_is_replaced_and_not_added_to_the_history() {
    let mut cluster = annotated(REVISION, "first");
    assert_eq!(status(&cluster.world(), &cluster.planned()), None);
    cluster.settle();
    let set = &cluster.sets.values().next().unwrap().set;
    assert_eq!(set.metadata.annotations[REVISION], "1");
    assert!(!set.metadata.annotations.contains_key(HISTORY));
}

/// Checks F33.
#[test]
fn revisions_saturate_at_i64_max_and_start_above_zero() {
    for (before, after) in [(i64::MAX, i64::MAX), (i64::MAX - 1, i64::MAX), (-7, 1)] {
        let mut cluster = annotated(REVISION, &before.to_string());
        cluster.set_image("next");
        cluster.settle();
        let revision = &cluster.deployment.metadata.annotations[REVISION];
        assert_eq!(*revision, after.to_string());
        assert_eq!((cluster.sets.len(), cluster.pods()), (2, (2, 2)));
    }
}

/// Checks D2: as upstream, anything but digits is ignored.
#[test]
fn an_invalid_size_annotation_does_not_count_as_a_resize() {
    for size in ["-1", "+3", "", "many", "2147483648", "2.5"] {
        let cluster = annotated(DESIRED, size);
        assert!(cluster.plan().is_empty(), "{size:?}: {:?}", cluster.plan());
    }
    assert!(!annotated(DESIRED, "3").plan().is_empty());
}

/// Checks D6: a negative count does not compensate for existing Pods.
#[test]
fn a_set_is_deleted_only_if_both_replicas_and_terminating_replicas_are_zero() {
    let mut cluster = Cluster::settled(2, 1, 0);
    cluster.set_image("next");
    cluster.settle();
    cluster.edit(|spec| spec.revision_history_limit = Some(0));
    let deletes = |replicas, terminating| {
        let mut cluster = cluster.clone();
        let mut sets = cluster.sets.values_mut();
        let old = sets.find(|simulated| simulated.pods == 0).unwrap();
        old.set.status.replicas = replicas;
        old.set.status.terminating_replicas = terminating;
        let steps = cluster.plan().steps;
        let delete = |action: &Action| matches!(action, Action::Delete(_));
        steps.iter().any(|step| delete(&step.action))
    };
    assert!(deletes(0, Some(0)) && deletes(0, None));
    assert!(!deletes(1, Some(-1)) && !deletes(0, Some(1)));
}
