//! Properties of plans, on random clusters.

use std::collections::HashSet;
use std::sync::Arc;

use crate::decisions::cluster::{Cluster, owned};
use expect_test::expect;
use jiff::Timestamp;
use proptest::prelude::*;
use setpoint_proto::core::{self, ContainerStatus};
use setpoint_replicaset_controller::{Action, BURST, World, plan};

/// Random clusters: owned and foreign Pods, orphans, Pods that are not selected, ended and terminating ones.
fn clusters() -> impl Strategy<Value = Cluster> {
    let pod = (
        0..3_u8,
        any::<bool>(),
        0..4_u8,
        prop::bool::weighted(0.2),
        0..3_u8,
    );
    (0..8_i32, prop::collection::vec(pod, 0..14), any::<u64>()).prop_map(
        |(replicas, pods, seed)| {
            let mut cluster = Cluster::new(replicas);
            cluster.seed = seed;
            for (index, (owner, selected, phase, deleting, node)) in pods.into_iter().enumerate() {
                let pod = cluster.add(&format!("pod-{index}"));
                match owner {
                    0 => pod.metadata.owner_references.clear(),
                    1 => pod.metadata.owner_references[0].uid = "another".into(),
                    _ => {}
                }
                if !selected {
                    pod.metadata.labels.insert("app".into(), "other".into());
                }
                pod.status.phase =
                    ["Pending", "Running", "Failed", "Unknown"][usize::from(phase)].into();
                pod.spec.node_name = ["", "a", "b"][usize::from(node)].into();
                pod.metadata.deletion_timestamp = deleting.then(|| Timestamp::UNIX_EPOCH.into());
            }
            cluster
        },
    )
}

fn counts(world: &World) -> (usize, usize) {
    let steps = plan(world).steps;
    let creates = steps
        .iter()
        .filter(|step| matches!(step.action, Action::Create { .. }))
        .count();
    let deletes = steps
        .iter()
        .filter(|step| matches!(step.action, Action::Delete(_)))
        .count();
    (creates, deletes)
}

proptest! {
    /// Checks R8.
    #[test]
    fn a_cluster_converges_to_an_empty_plan(mut cluster in clusters()) {
        cluster.settle();
        prop_assert_eq!(cluster.active(), cluster.set.spec.replicas.unwrap() as usize);
        prop_assert!(cluster.reconcile());
        prop_assert_eq!(cluster.set.status.replicas, cluster.set.spec.replicas.unwrap());
    }

    #[test]
    fn the_plan_does_not_depend_on_the_order_of_the_caches(
        mut cluster in clusters(),
        rotation in 0..14_usize,
        claimed in any::<bool>(),
    ) {
        if claimed {
            cluster.reconcile();
        }
        let world = cluster.world();
        let mut rotated = world.clone();
        let pods = rotated.pods.len().max(1);
        rotated.pods.rotate_left(rotation % pods);
        rotated.pods.reverse();
        let sorted = |world| {
            let mut steps: Vec<_> = plan(world).steps.into_iter().map(|step| format!("{step:?}")).collect();
            steps.sort();
            steps
        };
        prop_assert_eq!(sorted(&world), sorted(&rotated));
    }

    /// Checks R7.
    #[test]
    fn plans_write_only_owned_pods_and_selected_orphans(cluster in clusters()) {
        for step in plan(&cluster.world()).steps {
            match step.action {
                Action::Create { name } => prop_assert!(!cluster.pods.contains_key(&name)),
                Action::Adopt(pod) => {
                    let pod = &cluster.pods[&pod.key.name].metadata;
                    prop_assert!(pod.owner_references.is_empty() && pod.labels["app"] == "web");
                    prop_assert!(pod.deletion_timestamp.is_none());
                }
                Action::Release(pod) | Action::Delete(pod) => prop_assert!(owned(&cluster.pods[&pod.key.name])),
            }
        }
    }

    #[test]
    fn a_plan_never_creates_and_deletes(mut cluster in clusters()) {
        cluster.reconcile();
        let (creates, deletes) = counts(&cluster.world());
        prop_assert!(creates == 0 || deletes == 0);
    }

    /// Checks R1.
    #[test]
    fn a_plan_after_the_claims_creates_or_deletes_exactly_the_difference(mut cluster in clusters()) {
        cluster.reconcile();
        cluster.pods.retain(|_, pod| pod.status.phase != "Failed");
        let (active, wanted) = (cluster.active(), cluster.set.spec.replicas.unwrap() as usize);
        let difference = (wanted.saturating_sub(active), active.saturating_sub(wanted));
        prop_assert_eq!(counts(&cluster.world()), difference);
    }

    #[test]
    fn the_plan_of_a_set_that_is_being_deleted_is_empty(mut cluster in clusters()) {
        cluster.set.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
        prop_assert!(plan(&cluster.world()).is_empty());
    }

    /// Checks R3.
    #[test]
    fn a_crash_between_any_two_actions_converges_to_the_desired_count(
        mut cluster in clusters(),
        crashes in prop::collection::vec(0..6_usize, 0..5),
    ) {
        let wanted = cluster.set.spec.replicas.unwrap() as usize;
        for steps in crashes {
            for step in plan(&cluster.world()).steps.iter().take(steps) {
                cluster.apply(&step.action).unwrap();
            }
            cluster.seed = cluster.seed.wrapping_mul(31);
            prop_assert!(cluster.active() <= wanted.max(cluster.pods.len()));
        }
        cluster.settle();
        prop_assert_eq!(cluster.active(), wanted);
    }

    /// Checks R1, R2: however stale the cache is.
    #[test]
    fn repeating_a_plan_creates_no_pod_twice(mut cluster in clusters(), lag in 0..4_usize) {
        let stale = cluster.world();
        let planned = plan(&stale);
        for _ in 0..=lag {
            for step in planned.steps.iter().filter(|step| matches!(step.action, Action::Create { .. })) {
                cluster.apply(&step.action).unwrap();
            }
        }
        let (creates, _) = counts(&stale);
        prop_assert_eq!(cluster.active(), stale.active().count() + creates);
    }

    /// Checks R2: the cache shows only some of the Pods that an earlier reconcile created.
    #[test]
    fn names_of_an_earlier_attempt_are_chosen_again(replicas in 1..9_i32, visible in 0..9_usize) {
        let mut cluster = Cluster::new(replicas);
        let tried = plan(&cluster.world()).steps;
        for step in tried.iter().take(visible) {
            cluster.apply(&step.action).unwrap();
        }
        let again = plan(&cluster.world()).steps;
        prop_assert_eq!(&tried[visible.min(tried.len())..], &again[..]);
    }
}

/// Checks R7.
#[test]
fn orphans_are_adopted_and_unselected_pods_released_first() {
    let mut cluster = Cluster::new(3);
    cluster.add("orphan").metadata.owner_references.clear();
    cluster.add("stray").metadata.labels.clear();
    cluster.add("another's").metadata.owner_references[0].uid = "another".into();
    cluster.add("leaving").metadata.owner_references.clear();
    cluster.change("leaving").metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
    cluster.add("failed").metadata.owner_references.clear();
    cluster.change("failed").status.phase = "Failed".into();
    expect![[r#"
        Adopt(production/orphan) because an orphan that the selector matches
        Release(production/stray) because its labels left the selector
    "#]]
    .assert_eq(&plan(&cluster.world()).to_string());
    cluster.reconcile();
    expect![[r#"
        Create { name: "web-kgtcs" } because fewer Pods than replicas
        Create { name: "web-nrnm6" } because fewer Pods than replicas
    "#]]
    .assert_eq(&plan(&cluster.world()).to_string());
}

/// Checks R1.
#[test]
fn a_terminating_pod_is_replaced_and_not_deleted_again() {
    let mut cluster = Cluster::new(2);
    cluster.settle();
    let name = cluster.pods.keys().next().unwrap().clone();
    cluster.change(&name).metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
    assert_eq!(counts(&cluster.world()), (1, 0));
    cluster.set.spec.replicas = Some(1);
    assert!(plan(&cluster.world()).is_empty());
}

/// Checks R4.
#[test]
fn a_plan_creates_at_most_a_burst_of_pods_with_distinct_names() {
    let world = Cluster::new(2_000).world();
    let steps = plan(&world).steps;
    let names: HashSet<_> = steps.iter().map(|step| step.action.pod()).collect();
    assert_eq!((steps.len(), names.len()), (BURST, BURST));
    assert!(names.iter().all(|name| name.starts_with("web-")));
}

const ORDER: [&str; 11] = [
    "unscheduled",
    "pending",
    "unknown",
    "unready",
    "cheap",
    "crowded-1",
    "crowded-2",
    "fresh",
    "restless",
    "young",
    "old",
];

/// Checks R5.
#[test]
fn pods_are_deleted_in_the_order_of_upstream() {
    let at = |second| Timestamp::from_second(second).unwrap().into();
    let mut cluster = Cluster::new(0);
    for (place, name) in ORDER.into_iter().enumerate() {
        let meta = &mut cluster.add(name).metadata;
        // The order by uid alone is the reverse.
        (meta.creation_timestamp, meta.uid) = (at(100), format!("{:02}", 99 - place));
    }
    cluster.change("pending").spec.node_name = "a".into();
    let unknown = cluster.change("unknown");
    (unknown.spec.node_name, unknown.status.phase) = ("i".into(), "Unknown".into());
    let unready = cluster.change("unready");
    (unready.spec.node_name, unready.status.phase) = ("b".into(), "Running".into());
    let annotations = &mut cluster.run("cheap", "c", 100).metadata.annotations;
    let cost = "controller.kubernetes.io/pod-deletion-cost";
    annotations.insert(cost.into(), "-5".into());
    cluster.run("crowded-1", "d", 900);
    cluster.run("crowded-2", "d", 200);
    cluster.run("fresh", "e", 900);
    let restarted = ContainerStatus {
        restart_count: 3,
        ..Default::default()
    };
    let restless = cluster.run("restless", "f", 100);
    restless.status.container_statuses = vec![restarted];
    cluster.run("young", "g", 100).metadata.creation_timestamp = at(500);
    cluster.run("old", "h", 100);

    expect![[r#"
        Delete(production/unscheduled) because more Pods than replicas
        Delete(production/pending) because more Pods than replicas
        Delete(production/unknown) because more Pods than replicas
        Delete(production/unready) because more Pods than replicas
        Delete(production/cheap) because more Pods than replicas
        Delete(production/crowded-1) because more Pods than replicas
        Delete(production/crowded-2) because more Pods than replicas
        Delete(production/fresh) because more Pods than replicas
        Delete(production/restless) because more Pods than replicas
        Delete(production/young) because more Pods than replicas
        Delete(production/old) because more Pods than replicas
    "#]]
    .assert_eq(&plan(&cluster.world()).to_string());
}

/// Runs two Pods of about the same age, applies a change, and returns the name of the Pod that is deleted.
fn deleted_pod(change: impl FnOnce(&mut Cluster)) -> String {
    let mut cluster = Cluster::new(1);
    cluster.now = 1_000_000;
    for (name, node) in [("first", "a"), ("second", "b")] {
        cluster.add(name).metadata.uid = format!("uid-of-{name}");
        let pod = cluster.run(name, node, 400_000);
        pod.metadata.creation_timestamp = Timestamp::from_second(300_000).unwrap().into();
    }
    change(&mut cluster);
    match &plan(&cluster.world()).steps[..] {
        [step] => step.action.pod().to_owned(),
        steps => panic!("{steps:?}"),
    }
}

/// Checks F32, R5.
#[test]
fn times_are_compared_by_the_logarithm_of_their_age() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let ready = |name: &'static str, second| {
        deleted_pod(move |cluster| {
            cluster.run(name, "b", second);
        })
    };
    let created = |second: Option<i64>| {
        deleted_pod(move |cluster| {
            let meta = &mut cluster.change("second").metadata;
            meta.creation_timestamp = second.map(at).map(Into::into).unwrap_or_default();
        })
    };
    // Ages of 600 000 s and 570 000 s lie between the same two powers of two (of nanoseconds), 200 000 s do not.
    assert_eq!(ready("second", 430_000), "first");
    assert_eq!(ready("second", 800_000), "second");
    assert_eq!(
        ready("second", 1_000_001),
        "second",
        "a future time sorts as the newest"
    );
    assert_eq!(created(Some(350_000)), "first");
    assert_eq!(created(Some(900_000)), "second");
    assert_eq!(created(None), "second", "an unknown time sorts first");
    let unknown = deleted_pod(|cluster| {
        let pod = cluster.change("second");
        pod.status.conditions[0].last_transition_time = Default::default();
        cluster.run("first", "a", 1_000_001);
    });
    assert_eq!(unknown, "second", "before a future time");
}

/// Checks F32.
#[test]
fn restarts_of_sidecars_count_after_those_of_containers() {
    let restarts = |name: &'static str, containers: i32, sidecars: i32, plain: i32| {
        move |cluster: &mut Cluster| {
            let status = |name: &str, restart_count| ContainerStatus {
                name: name.into(),
                restart_count,
                ..Default::default()
            };
            let pod = cluster.change(name);
            let container = |name: &str| core::Container {
                name: name.into(),
                ..Default::default()
            };
            pod.spec.init_containers = vec![container("sidecar"), container("plain")];
            pod.spec.init_containers[0].restart_policy = Some("Always".into());
            pod.status.container_statuses = vec![status("main", containers)];
            pod.status.init_container_statuses =
                vec![status("sidecar", sidecars), status("plain", plain)];
        }
    };
    assert_eq!(deleted_pod(restarts("second", 0, 1, 0)), "second");
    assert_eq!(deleted_pod(restarts("second", 0, 0, 1)), "first");
    let both = deleted_pod(|cluster| {
        restarts("first", 1, 9, 0)(cluster);
        restarts("second", 2, 0, 0)(cluster);
    });
    assert_eq!(both, "second");
}

/// Checks R5.
#[test]
fn pods_of_sibling_sets_count_in_the_ranking_by_node() {
    let mut cluster = Cluster::new(1);
    cluster.add("alone");
    cluster.add("beside");
    cluster.run("alone", "a", 900);
    cluster.run("beside", "b", 100);
    let mut world = cluster.world();
    world.neighbours = [("b".into(), 1)].into();
    let deleted = &plan(&world).steps[0].action;
    assert!(
        matches!(deleted, Action::Delete(pod) if pod.key.name == "beside"),
        "{deleted:?}"
    );
}

/// Checks R6.
#[test]
fn a_pod_that_was_relabelled_after_the_plan_is_not_deleted() {
    let mut cluster = Cluster::new(1);
    cluster.settle();
    cluster.set.spec.replicas = Some(0);
    let planned = plan(&cluster.world()).steps;
    let name = cluster.pods.keys().next().unwrap().clone();
    cluster.change(&name).metadata.labels.clear();
    cluster.apply(&planned[0].action).unwrap_err();
    cluster.settle();
    assert!(cluster.pods[&name].metadata.deletion_timestamp.is_none());
    assert!(!owned(&cluster.pods[&name]));
}

#[test]
fn a_set_with_min_ready_seconds_is_requeued_for_when_the_first_pod_becomes_available() {
    let mut cluster = Cluster::new(2);
    cluster.set.spec.min_ready_seconds = 30;
    cluster.add("first");
    cluster.add("second");
    cluster.run("first", "a", 980);
    cluster.run("second", "b", 990);
    let mut world = cluster.world();
    assert_eq!(plan(&world).again, Some(std::time::Duration::from_secs(10)));
    world.now = Timestamp::from_second(1_020).unwrap();
    assert_eq!(plan(&world).again, None);
    world.pods = Vec::<Arc<_>>::new();
    assert_eq!(plan(&world).again, None);
}
