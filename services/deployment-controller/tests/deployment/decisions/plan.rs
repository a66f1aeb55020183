//! Properties of plans, on random rollouts.

use std::collections::HashSet;

use crate::decisions::cluster::{Cluster, REVISION, SimulatedSet};
use expect_test::expect;
use jiff::Timestamp;
use proptest::prelude::*;
use setpoint_controller::Outcome;
use setpoint_deployment_controller::{Action, plan};

/// A random event.
#[derive(Clone, Debug)]
enum Event {
    /// The controller restarts after this number of actions.
    Reconcile(usize),
    ScalePods(usize, i32),
    MakeAvailable(usize),
    ReportStatus(usize),
    FinishTerminating(usize),
    SetImage(u8),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (0..4_usize).prop_map(Event::Reconcile),
        3 => (0..4_usize, 1..6_i32).prop_map(|(index, limit)| Event::ScalePods(index, limit)),
        3 => (0..4_usize).prop_map(Event::MakeAvailable),
        3 => (0..4_usize).prop_map(Event::ReportStatus),
        1 => (0..4_usize).prop_map(Event::FinishTerminating),
        1 => (0..3_u8).prop_map(Event::SetImage),
    ];
    prop::collection::vec(event, 0..120)
}

fn apply_event(cluster: &mut Cluster, event: &Event) {
    match *event {
        Event::Reconcile(steps) => drop(cluster.reconcile(steps)),
        Event::ScalePods(index, limit) => cluster.scale_at_most(index, limit),
        Event::MakeAvailable(index) => cluster.make_available(index),
        Event::ReportStatus(index) => cluster.report_status(index),
        Event::FinishTerminating(index) => cluster.finish_terminating(index),
        Event::SetImage(image) => cluster.set_image(&format!("image-{image}")),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Checks D1, D3, R3: for any order of events, crashes and changes of the template.
    #[test]
    fn a_rolling_update_keeps_max_surge_and_max_unavailable(
        replicas in 0..9_i32,
        surge in 0..4_i32,
        unavailable in 0..4_i32,
        events in events(),
    ) {
        let mut cluster = Cluster::settled(replicas, surge, unavailable);
        cluster.set_image("next");
        let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
        for event in &events {
            apply_event(&mut cluster, event);
            let (pods, available) = cluster.pods();
            prop_assert!(pods <= replicas + surge, "{pods} Pods after {event:?}");
            prop_assert!(available >= replicas - unavailable, "{available} available after {event:?}");
        }
        cluster.settle();
        prop_assert_eq!(cluster.pods(), (replicas, replicas));
        let revision = cluster.deployment.metadata.annotations[REVISION].clone();
        let expected = if replicas > 0 { vec![(revision, replicas)] } else { vec![] };
        prop_assert_eq!(cluster.pods_by_revision(), expected);
    }

    /// Checks D2, D9.
    #[test]
    fn changes_of_size_converge_during_rollouts_and_pauses(
        sizes in prop::collection::vec((0..9_i32, any::<bool>(), events()), 1..4),
    ) {
        let mut cluster = Cluster::settled(3, 1, 0);
        for (size, paused, events) in sizes {
            cluster.edit(|spec| (spec.replicas, spec.paused) = (Some(size), paused));
            events.iter().for_each(|event| apply_event(&mut cluster, event));
        }
        cluster.edit(|spec| spec.paused = false);
        cluster.settle();
        let wanted = cluster.deployment.spec.replicas.unwrap();
        prop_assert_eq!(cluster.pods(), (wanted, wanted));
        prop_assert!(cluster.pods_by_revision().len() <= 1);
    }

    /// Checks D10.
    #[test]
    fn recreate_never_runs_pods_of_two_templates_at_once(replicas in 0..5_i32, events in events()) {
        let mut cluster = Cluster::new(replicas, 0, 0);
        cluster.edit(|spec| spec.strategy.r#type = "Recreate".into());
        cluster.settle();
        cluster.set_image("next");
        for event in &events {
            apply_event(&mut cluster, event);
            let running = cluster.sets.values().filter(|set| set.pods + set.terminating > 0);
            prop_assert!(running.count() <= 1, "after {event:?}");
        }
        cluster.settle();
        prop_assert_eq!(cluster.pods(), (replicas, replicas));
    }

    #[test]
    fn the_plan_does_not_depend_on_the_order_of_the_caches(events in events(), rotation in 0..4_usize) {
        let mut cluster = Cluster::settled(5, 2, 1);
        events.iter().for_each(|event| apply_event(&mut cluster, event));
        let world = cluster.world();
        let mut rotated = world.clone();
        let sets = rotated.sets.len().max(1);
        rotated.sets.rotate_left(rotation % sets);
        rotated.sets.reverse();
        prop_assert_eq!(plan(&world), plan(&rotated));
    }

    #[test]
    fn a_plan_has_one_kind_of_action(events in events(), more in 0..3_i32) {
        let mut cluster = Cluster::settled(4, 1, 1);
        events.iter().for_each(|event| apply_event(&mut cluster, event));
        cluster.edit(|spec| (spec.min_ready_seconds, spec.replicas) = (more, Some(3 + more)));
        let kind = |action: Action| Some(match action {
            Action::Adopt(_) | Action::Release(_) => "claim",
            Action::Create { .. } => "create",
            Action::Scale { from, to, .. } if from > to => "down",
            Action::Scale { from, to, .. } if from < to => "up",
            // Updates the size annotation of a set whose share stays the same.
            Action::Scale { .. } => return None,
            Action::Refresh { .. } => "refresh",
            Action::Delete(_) => "delete",
        });
        let kinds: HashSet<_> = cluster.plan().steps.into_iter().filter_map(|step| kind(step.action)).collect();
        prop_assert!(kinds.len() <= 1, "{kinds:?}");
    }

    /// Checks D13.
    #[test]
    fn the_plan_of_a_deployment_that_is_being_deleted_is_empty(events in events()) {
        let mut cluster = Cluster::settled(3, 1, 1);
        events.iter().for_each(|event| apply_event(&mut cluster, event));
        cluster.deployment.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
        prop_assert!(cluster.plan().is_empty());
    }

    /// Checks D12: sets of others are never written, orphans only if they are selected.
    #[test]
    fn plans_write_only_owned_sets_and_selected_orphans(
        events in events(),
        owner in 0..2_u8,
        selected in any::<bool>(),
        replicas in 0..3_i32,
    ) {
        let mut cluster = Cluster::settled(3, 1, 1);
        let mut foreign = cluster.sets.values().next().unwrap().clone();
        foreign.set.metadata.name = "foreign".into();
        foreign.set.spec.replicas = Some(replicas);
        match owner {
            0 => foreign.set.metadata.owner_references.clear(),
            _ => foreign.set.metadata.owner_references[0].uid = "another".into(),
        }
        if !selected {
            foreign.set.metadata.labels.clear();
        }
        cluster.sets.insert("foreign".into(), foreign);
        let adopts = |action: &Action| matches!(action, Action::Adopt(set) if set.key.name == "foreign");
        prop_assert_eq!(cluster.plan().steps.iter().any(|step| adopts(&step.action)), owner == 0 && selected);
        cluster.sets.get_mut("foreign").unwrap().set.metadata.labels.clear();
        events.iter().for_each(|event| apply_event(&mut cluster, event));
        prop_assert_eq!(cluster.sets["foreign"].set.spec.replicas, Some(replicas));
    }

    /// Checks D14.
    #[test]
    fn the_observed_generation_stays_if_an_action_fails(replicas in 4..9_i32) {
        let mut cluster = Cluster::settled(3, 1, 0);
        cluster.edit(|spec| spec.replicas = Some(replicas));
        let error = setpoint_proto::ApiError::new(setpoint_proto::Reason::InternalError, "no");
        let failed = Outcome { failed: Some(error), ..cluster.planned() };
        cluster.write_status(&cluster.world(), &failed);
        prop_assert_eq!(cluster.deployment.status.observed_generation, 1);
        cluster.reconcile(usize::MAX);
        prop_assert_eq!(cluster.deployment.status.observed_generation, 2);
        prop_assert_eq!(cluster.sets.values().next().unwrap().set.spec.replicas, Some(replicas));
    }
}

/// Checks D2: a Deployment of 10 with a surge of 3, caught at 8 + 5, grows to 15 + 3 as 11 + 7.
#[test]
fn a_change_of_size_during_a_rollout_is_distributed_proportionally() {
    let mut cluster = Cluster::settled(10, 3, 2);
    cluster.set_image("next");
    for _ in 0..3 {
        cluster.reconcile(usize::MAX);
        cluster.sync_sets();
    }
    assert_eq!(
        cluster.pods_by_revision(),
        [("1".to_owned(), 8), ("2".to_owned(), 5)]
    );
    cluster.edit(|spec| spec.replicas = Some(15));
    cluster.reconcile(usize::MAX);
    cluster.sync_sets();
    assert_eq!(
        cluster.pods_by_revision(),
        [("1".to_owned(), 11), ("2".to_owned(), 7)]
    );
}

/// Checks D2.
#[test]
fn the_remainder_of_a_growth_goes_to_the_newest_of_the_largest_sets() {
    let mut cluster = Cluster::settled(2, 1, 0);
    for image in ["b", "c"] {
        cluster.set_image(image);
        cluster.settle();
    }
    for set in cluster.sets.values_mut() {
        let size = [("desired-replicas", "5"), ("max-replicas", "6")];
        let annotate = |(name, value): (&str, &str)| {
            (format!("deployment.kubernetes.io/{name}"), value.to_owned())
        };
        set.set.metadata.annotations.extend(size.map(annotate));
        set.set.spec.replicas = Some(2);
    }
    cluster.edit(|spec| spec.replicas = Some(6));
    cluster.reconcile(usize::MAX);
    cluster.sync_sets();
    assert_eq!(
        cluster.pods_by_revision(),
        [
            ("1".to_owned(), 2),
            ("2".to_owned(), 2),
            ("3".to_owned(), 3)
        ]
    );
}

#[test]
fn unavailable_old_pods_are_kept_while_new_ones_are_unavailable() {
    let mut cluster = Cluster::settled(4, 1, 1);
    cluster.set_image("broken");
    cluster.sets.values_mut().next().unwrap().available = 0;
    for _ in 0..6 {
        cluster.sync_sets();
        cluster.reconcile(usize::MAX);
    }
    let (pods, _) = cluster.pods();
    assert!(pods >= 4, "{:?}", cluster.pods_by_revision());
}

/// Checks D9.
#[test]
fn a_rollout_paused_with_all_new_pods_available_scales_the_old_set_down() {
    let mut cluster = Cluster::settled(1, 1, 0);
    cluster.set_image("next");
    cluster.reconcile(usize::MAX);
    cluster.sync_sets();
    cluster.make_available(0);
    cluster.make_available(1);
    cluster.sync_sets();
    cluster.edit(|spec| spec.paused = true);
    cluster.reconcile(usize::MAX);
    cluster.sync_sets();
    assert_eq!(cluster.pods_by_revision(), [("2".to_owned(), 1)]);
}

/// Checks D5.
#[test]
fn a_change_outside_the_template_creates_no_set() {
    let mut cluster = Cluster::settled(3, 1, 0);
    cluster
        .deployment
        .metadata
        .labels
        .insert("team".into(), "a".into());
    cluster
        .deployment
        .metadata
        .annotations
        .insert("kubernetes.io/change-cause".into(), "a good one".into());
    cluster.edit(|spec| spec.replicas = Some(4));
    cluster.edit(|spec| spec.min_ready_seconds = 5);
    cluster.settle();
    let (_, only) = cluster.sets.first_key_value().unwrap();
    assert_eq!(cluster.sets.len(), 1);
    assert_eq!(
        only.set.metadata.annotations["kubernetes.io/change-cause"],
        "a good one"
    );
    assert_eq!((only.pods, only.set.spec.min_ready_seconds), (4, 5));
}

/// Checks D6.
#[test]
fn the_revision_history_limit_keeps_the_sets_of_the_highest_revisions() {
    let mut cluster = Cluster::settled(2, 1, 0);
    cluster.edit(|spec| spec.revision_history_limit = Some(2));
    for image in ["b", "c", "", "d"] {
        cluster.set_image(image);
        cluster.settle();
    }
    assert_eq!(cluster.revisions(), ["3", "4", "5"]);
    cluster.edit(|spec| spec.revision_history_limit = Some(0));
    cluster.settle();
    assert_eq!(cluster.revisions(), ["5"]);
}

/// Checks D6.
#[test]
fn a_set_with_pods_is_not_cleaned_up() {
    let mut cluster = Cluster::settled(2, 1, 0);
    cluster.set_image("next");
    cluster.reconcile(usize::MAX);
    cluster.sync_sets();
    cluster.edit(|spec| (spec.revision_history_limit, spec.paused) = (Some(0), true));
    cluster.settle();
    assert_eq!(cluster.revisions(), ["1", "2"]);
}

/// Checks D7.
#[test]
fn a_rollback_reuses_the_old_set_under_a_new_revision() {
    let mut cluster = Cluster::settled(2, 1, 0);
    let first = cluster.sets.keys().next().unwrap().clone();
    for image in ["b", "c", "d", "e", "f", "g", "h", "i", "j", "k"] {
        cluster.set_image(image);
        cluster.settle();
    }
    cluster.set_image("");
    cluster.settle();
    assert_eq!(cluster.deployment.metadata.annotations[REVISION], "12");
    let back = &cluster.sets[&first];
    assert_eq!(
        (back.pods, back.set.metadata.annotations[REVISION].as_str()),
        (2, "12")
    );
    assert_eq!(
        back.set.metadata.annotations["deployment.kubernetes.io/revision-history"],
        "1"
    );
}

/// Checks D6.
#[test]
fn old_sets_are_kept_until_the_rollout_is_complete() {
    let mut cluster = Cluster::settled(2, 1, 1);
    cluster.edit(|spec| spec.revision_history_limit = Some(0));
    cluster.set_image("next");
    cluster.reconcile(usize::MAX);
    cluster.sync_sets();
    (0..2).for_each(|index| cluster.make_available(index));
    for _ in 0..6 {
        cluster.reconcile(usize::MAX);
        cluster.sync_sets();
        (0..2).for_each(|index| cluster.finish_terminating(index));
    }
    assert_eq!(
        cluster.pods_by_revision(),
        [("2".to_owned(), 2)],
        "the second new Pod is not available"
    );
    assert_eq!(cluster.revisions(), ["1", "2"]);
    cluster.settle();
    assert_eq!(cluster.revisions(), ["2"]);
}

/// Checks D12.
#[test]
fn a_set_that_the_selector_no_longer_matches_is_released_first() {
    let mut cluster = Cluster::settled(2, 1, 0);
    let set = cluster.sets.values_mut().next().unwrap();
    set.set.metadata.labels.clear();
    cluster.edit(|spec| spec.replicas = Some(5));
    expect![[r#"
        Release(production/web-88cf95984) because its labels left the selector
    "#]]
    .assert_eq(&cluster.plan().to_string());
    cluster.reconcile(usize::MAX);
    let owners = |set: &SimulatedSet| set.set.metadata.owner_references.len();
    assert_eq!(cluster.sets.values().map(owners).sum::<usize>(), 0);
}

/// Checks D12.
#[test]
fn an_orphan_that_is_being_deleted_is_not_adopted() {
    let mut cluster = Cluster::settled(2, 1, 0);
    let set = &mut cluster.sets.values_mut().next().unwrap().set;
    set.metadata.owner_references.clear();
    set.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
    let adopts = |action: &Action| matches!(action, Action::Adopt(_));
    assert!(!cluster.plan().steps.iter().any(|step| adopts(&step.action)));
}

/// Checks D9.
#[test]
fn a_paused_deployment_scales_but_does_not_roll_out() {
    let mut cluster = Cluster::settled(3, 1, 0);
    cluster.edit(|spec| spec.paused = true);
    cluster.set_image("next");
    cluster.edit(|spec| spec.replicas = Some(5));
    cluster.settle();
    assert_eq!(cluster.pods_by_revision(), [("1".to_owned(), 5)]);
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("Unknown", "DeploymentPaused"))
    );
    for size in [0, 5] {
        cluster.edit(|spec| spec.replicas = Some(size));
        cluster.settle();
    }
    assert_eq!(
        cluster.pods_by_revision(),
        [("1".to_owned(), 5)],
        "scaled back to the old size"
    );
    cluster.edit(|spec| spec.paused = false);
    cluster.settle();
    assert_eq!(cluster.pods_by_revision(), [("2".to_owned(), 5)]);
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("True", "NewReplicaSetAvailable"))
    );
}
