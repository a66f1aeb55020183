//! What every plan of the deployment-controller keeps to, on rollouts made up at random.

use std::collections::HashSet;

use crate::cluster::{Cluster, REVISION};
use jiff::Timestamp;
use proptest::prelude::*;
use setpoint_controller::Outcome;
use setpoint_deployment_controller::{Action, plan};

/// Something that happens, in any order and as often as it likes.
#[derive(Clone, Debug)]
enum Event {
    /// The controller gets so far with its plan, then dies and comes back.
    Round(usize),
    Follow(usize, i32),
    Start(usize),
    Tell(usize),
    End(usize),
    SetImage(u8),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (0..4_usize).prop_map(Event::Round),
        3 => (0..4_usize, 1..6_i32).prop_map(|(place, most)| Event::Follow(place, most)),
        3 => (0..4_usize).prop_map(Event::Start),
        3 => (0..4_usize).prop_map(Event::Tell),
        1 => (0..4_usize).prop_map(Event::End),
        1 => (0..3_u8).prop_map(Event::SetImage),
    ];
    prop::collection::vec(event, 0..120)
}

fn happen(cluster: &mut Cluster, event: &Event) {
    match *event {
        Event::Round(survives) => drop(cluster.round(survives)),
        Event::Follow(place, most) => cluster.follow_in_part(place, most),
        Event::Start(place) => cluster.start(place),
        Event::Tell(place) => cluster.tell(place),
        Event::End(place) => cluster.end(place),
        Event::SetImage(image) => cluster.set_image(&format!("image-{image}")),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Checks D1, D3, R3: whatever the order, whoever dies, and however often the template changes on the way.
    #[test]
    fn a_rolling_update_never_leaves_its_bounds(replicas in 0..9_i32, surge in 0..4_i32, unavailable in 0..4_i32, events in events()) {
        let mut cluster = Cluster::settled(replicas, surge, unavailable);
        cluster.set_image("next");
        let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
        for event in &events {
            happen(&mut cluster, event);
            let (pods, available) = cluster.pods();
            prop_assert!(pods <= replicas + surge, "{pods} Pods after {event:?}");
            prop_assert!(available >= replicas - unavailable, "{available} available after {event:?}");
        }
        cluster.settle();
        prop_assert_eq!(cluster.pods(), (replicas, replicas));
        let revision = cluster.deployment.metadata.annotations[REVISION].clone();
        let expected = if replicas > 0 { vec![(revision, replicas)] } else { vec![] };
        prop_assert_eq!(cluster.spread(), expected);
    }

    /// Checks D2, D9: it converges, whatever else is changed on the way, paused or not.
    #[test]
    fn any_change_of_size_converges(sizes in prop::collection::vec((0..9_i32, any::<bool>(), events()), 1..4)) {
        let mut cluster = Cluster::settled(3, 1, 0);
        for (size, paused, events) in sizes {
            cluster.edit(|spec| (spec.replicas, spec.paused) = (Some(size), paused));
            events.iter().for_each(|event| happen(&mut cluster, event));
        }
        cluster.edit(|spec| spec.paused = false);
        cluster.settle();
        let wanted = cluster.deployment.spec.replicas.unwrap();
        prop_assert_eq!(cluster.pods(), (wanted, wanted));
        prop_assert!(cluster.spread().len() <= 1);
    }

    /// Checks D10.
    #[test]
    fn recreate_never_runs_two_templates_at_once(replicas in 0..5_i32, events in events()) {
        let mut cluster = Cluster::new(replicas, 0, 0);
        cluster.edit(|spec| spec.strategy.r#type = "Recreate".into());
        cluster.settle();
        cluster.set_image("next");
        for event in &events {
            happen(&mut cluster, event);
            let running = cluster.sets.values().filter(|set| set.pods + set.terminating > 0);
            prop_assert!(running.count() <= 1, "after {event:?}");
        }
        cluster.settle();
        prop_assert_eq!(cluster.pods(), (replicas, replicas));
    }

    #[test]
    fn the_order_of_the_caches_is_irrelevant(events in events(), turn in 0..4_usize) {
        let mut cluster = Cluster::settled(5, 2, 1);
        events.iter().for_each(|event| happen(&mut cluster, event));
        let world = cluster.world();
        let mut turned = world.clone();
        let places = turned.sets.len().max(1);
        turned.sets.rotate_left(turn % places);
        turned.sets.reverse();
        prop_assert_eq!(plan(&world), plan(&turned));
    }

    #[test]
    fn a_round_does_one_kind_of_thing(events in events(), more in 0..3_i32) {
        let mut cluster = Cluster::settled(4, 1, 1);
        events.iter().for_each(|event| happen(&mut cluster, event));
        cluster.edit(|spec| (spec.min_ready_seconds, spec.replicas) = (more, Some(3 + more)));
        let kind = |action: Action| Some(match action {
            Action::Adopt(_) | Action::Release(_) => "claim",
            Action::Create { .. } => "create",
            Action::Scale { from, to, .. } if from > to => "down",
            Action::Scale { from, to, .. } if from < to => "up",
            // A set whose share is what it has is only told the new size.
            Action::Scale { .. } => return None,
            Action::Refresh { .. } => "refresh",
            Action::Delete(_) => "delete",
        });
        let kinds: HashSet<_> = cluster.plan().steps.into_iter().filter_map(|step| kind(step.action)).collect();
        prop_assert!(kinds.len() <= 1, "{kinds:?}");
    }

    /// Checks D13.
    #[test]
    fn a_deployment_that_is_being_deleted_is_left_alone(events in events()) {
        let mut cluster = Cluster::settled(3, 1, 1);
        events.iter().for_each(|event| happen(&mut cluster, event));
        cluster.deployment.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
        prop_assert!(cluster.plan().is_empty());
    }

    /// Checks D12: sets of others are no business of ours, and orphans only if they are selected.
    #[test]
    fn it_touches_only_what_it_owns(events in events(), owner in 0..2_u8, selected in any::<bool>(), replicas in 0..3_i32) {
        let mut cluster = Cluster::settled(3, 1, 1);
        let mut stranger = cluster.sets.values().next().unwrap().clone();
        stranger.set.metadata.name = "stranger".into();
        stranger.set.spec.replicas = Some(replicas);
        match owner {
            0 => stranger.set.metadata.owner_references.clear(),
            _ => stranger.set.metadata.owner_references[0].uid = "another".into(),
        }
        if !selected {
            stranger.set.metadata.labels.clear();
        }
        cluster.sets.insert("stranger".into(), stranger);
        let adopts = |action: &Action| matches!(action, Action::Adopt(set) if set.key.name == "stranger");
        prop_assert_eq!(cluster.plan().steps.iter().any(|step| adopts(&step.action)), owner == 0 && selected);
        cluster.sets.get_mut("stranger").unwrap().set.metadata.labels.clear();
        events.iter().for_each(|event| happen(&mut cluster, event));
        prop_assert_eq!(cluster.sets["stranger"].set.spec.replicas, Some(replicas));
    }

    /// Checks D14.
    #[test]
    fn what_was_not_acted_upon_is_not_observed(replicas in 4..9_i32) {
        let mut cluster = Cluster::settled(3, 1, 0);
        cluster.edit(|spec| spec.replicas = Some(replicas));
        let error = setpoint_proto::ApiError::new(setpoint_proto::Reason::InternalError, "no");
        let failed = Outcome { failed: Some(error), ..cluster.planned() };
        cluster.report(&cluster.world(), &failed);
        prop_assert_eq!(cluster.deployment.status.observed_generation, 1);
        cluster.round(usize::MAX);
        prop_assert_eq!(cluster.deployment.status.observed_generation, 2);
        prop_assert_eq!(cluster.sets.values().next().unwrap().set.spec.replicas, Some(replicas));
    }
}

/// Checks D2: a Deployment of 10 with a surge of 3, caught at 8 + 5, grows to 15 + 3 as 11 + 7.
#[test]
fn a_change_of_size_in_the_middle_of_a_rollout_is_shared_out() {
    let mut cluster = Cluster::settled(10, 3, 2);
    cluster.set_image("next");
    for _ in 0..3 {
        cluster.round(usize::MAX);
        cluster.follow_all();
    }
    assert_eq!(cluster.spread(), [("1".to_owned(), 8), ("2".to_owned(), 5)]);
    cluster.edit(|spec| spec.replicas = Some(15));
    cluster.round(usize::MAX);
    cluster.follow_all();
    assert_eq!(
        cluster.spread(),
        [("1".to_owned(), 11), ("2".to_owned(), 7)]
    );
}

/// Checks D2: what rounding leaves over goes to the newest of the largest.
#[test]
fn a_remainder_goes_to_the_newest_of_the_largest() {
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
    cluster.round(usize::MAX);
    cluster.follow_all();
    assert_eq!(
        cluster.spread(),
        [
            ("1".to_owned(), 2),
            ("2".to_owned(), 2),
            ("3".to_owned(), 3)
        ]
    );
}

#[test]
fn failing_old_pods_are_kept_while_new_ones_fail_too() {
    let mut cluster = Cluster::settled(4, 1, 1);
    cluster.set_image("broken");
    cluster.sets.values_mut().next().unwrap().available = 0;
    for _ in 0..6 {
        cluster.follow_all();
        cluster.round(usize::MAX);
    }
    let (pods, _) = cluster.pods();
    assert!(pods >= 4, "{:?}", cluster.spread());
}

/// Checks D9.
#[test]
fn a_rollout_paused_when_all_new_pods_are_available_gives_up_the_old_ones() {
    let mut cluster = Cluster::settled(1, 1, 0);
    cluster.set_image("next");
    cluster.round(usize::MAX);
    cluster.follow_all();
    cluster.start(0);
    cluster.start(1);
    cluster.follow_all();
    cluster.edit(|spec| spec.paused = true);
    cluster.round(usize::MAX);
    cluster.follow_all();
    assert_eq!(cluster.spread(), [("2".to_owned(), 1)]);
}

/// Checks D5.
#[test]
fn what_does_not_change_the_template_makes_no_set() {
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
fn only_as_many_old_sets_are_kept_as_wanted_and_those_of_the_highest_revisions() {
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
fn a_set_with_pods_is_not_forgotten() {
    let mut cluster = Cluster::settled(2, 1, 0);
    cluster.set_image("next");
    cluster.round(usize::MAX);
    cluster.follow_all();
    cluster.edit(|spec| (spec.revision_history_limit, spec.paused) = (Some(0), true));
    cluster.settle();
    assert_eq!(cluster.revisions(), ["1", "2"]);
}

/// Checks D7.
#[test]
fn going_back_reuses_the_old_set_under_a_new_number() {
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

/// Checks D6: until the rollout is complete one may want to go back.
#[test]
fn nothing_is_forgotten_in_the_middle_of_a_rollout() {
    let mut cluster = Cluster::settled(2, 1, 1);
    cluster.edit(|spec| spec.revision_history_limit = Some(0));
    cluster.set_image("next");
    cluster.round(usize::MAX);
    cluster.follow_all();
    (0..2).for_each(|place| cluster.start(place));
    for _ in 0..6 {
        cluster.round(usize::MAX);
        cluster.follow_all();
        (0..2).for_each(|place| cluster.end(place));
    }
    assert_eq!(cluster.spread(), [("2".to_owned(), 2)], "one is to come");
    assert_eq!(cluster.revisions(), ["1", "2"]);
    cluster.settle();
    assert_eq!(cluster.revisions(), ["2"]);
}

/// Checks D12.
#[test]
fn a_set_that_left_the_selector_is_released_before_anything_else() {
    let mut cluster = Cluster::settled(2, 1, 0);
    let (name, set) = cluster.sets.iter_mut().next().unwrap();
    set.set.metadata.labels.clear();
    let name = name.clone();
    cluster.edit(|spec| spec.replicas = Some(5));
    let steps = cluster.plan().steps;
    assert_eq!((steps.len(), steps[0].action.set()), (1, &*name));
    assert!(matches!(&steps[0].action, Action::Release(_)), "{steps:?}");
    assert_eq!(steps[0].because, "its labels left the selector");
    cluster.round(usize::MAX);
    assert!(
        cluster
            .sets
            .values()
            .all(|set| set.set.metadata.owner_references.is_empty())
    );
}

/// Checks D12: a set on its way out is nobody's any more.
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
fn a_paused_deployment_scales_but_does_not_roll() {
    let mut cluster = Cluster::settled(3, 1, 0);
    cluster.edit(|spec| spec.paused = true);
    cluster.set_image("next");
    cluster.edit(|spec| spec.replicas = Some(5));
    cluster.settle();
    assert_eq!(cluster.spread(), [("1".to_owned(), 5)]);
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("Unknown", "DeploymentPaused"))
    );
    for size in [0, 5] {
        cluster.edit(|spec| spec.replicas = Some(size));
        cluster.settle();
    }
    assert_eq!(cluster.spread(), [("1".to_owned(), 5)], "they come back");
    cluster.edit(|spec| spec.paused = false);
    cluster.settle();
    assert_eq!(cluster.spread(), [("2".to_owned(), 5)]);
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("True", "NewReplicaSetAvailable"))
    );
}
