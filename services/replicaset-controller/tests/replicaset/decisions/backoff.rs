//! Tests of the backoff after rejected Pods, in virtual time.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::decisions::cluster::Cluster;
use expect_test::expect;
use jiff::Timestamp;
use setpoint_proto::core::ContainerStatus;
use setpoint_replicaset_controller::{Action, REJECTED_KEPT, plan};

/// Rejects every Pod for this number of seconds; returns the times at which Pods were created, in seconds.
fn reject_all_for(cluster: &mut Cluster, seconds: i64) -> Vec<i64> {
    let (end, mut created) = (cluster.now + seconds, Vec::new());
    for attempt in 0.. {
        if cluster.now >= end {
            break;
        }
        assert!(attempt < 1_000 && created.len() < 10_000, "a hot loop");
        let before = cluster.pods.clone();
        let again = plan(&cluster.world()).again;
        cluster.reconcile();
        let new = cluster
            .pods
            .keys()
            .filter(|name| !before.contains_key(*name));
        created.extend(new.map(|_| cluster.now));
        cluster.reject_all();
        cluster.finish_terminating();
        cluster.now += again.map_or(0, |again| again.as_secs().max(1) as i64);
    }
    created
}

fn creates(cluster: &Cluster) -> usize {
    let steps = plan(&cluster.world()).steps;
    let create = |action: &Action| matches!(action, Action::Create { .. });
    steps.iter().filter(|step| create(&step.action)).count()
}

fn waits(cluster: &Cluster) -> Option<u64> {
    let plan = plan(&cluster.world());
    assert!(plan.again.is_none() || plan.is_empty(), "{plan:?}");
    plan.again.map(|again| again.as_secs())
}

/// Returns a set of one Pod, after attempts that were rejected at these seconds.
fn rejected_at(seconds: &[i64]) -> Cluster {
    let mut cluster = Cluster::new(1);
    for (n, second) in seconds.iter().enumerate() {
        cluster.now = *second;
        let name = format!("pod-{n}");
        cluster.add(&name);
        cluster.reject(&name);
    }
    cluster
}

/// Checks F6.
#[test]
fn a_pod_that_its_node_rejects_is_replaced_after_a_wait_and_a_few_such_pods_are_kept() {
    let mut cluster = rejected_at(&[1_000]);
    expect![[r#"
        look again after 1s
    "#]]
    .assert_eq(&plan(&cluster.world()).to_string());
    cluster.now += 1;
    expect![[r#"
        Create { name: "web-d5frc" } because fewer Pods than replicas
    "#]]
    .assert_eq(&plan(&cluster.world()).to_string());
    let many: Vec<_> = (1_000..).take(REJECTED_KEPT + 2).collect();
    expect![[r#"
        Delete(production/pod-1) because more Pods rejected by nodes than are kept
        Delete(production/pod-0) because more Pods rejected by nodes than are kept
    "#]]
    .assert_eq(&plan(&rejected_at(&many).world()).to_string());
}

/// Checks F6, R8.
#[test]
fn creates_back_off_while_a_node_rejects_every_pod() {
    let mut cluster = Cluster::new(1);
    let start = cluster.now;
    let created = reject_all_for(&mut cluster, 3_600);
    let after: Vec<_> = created.iter().map(|second| second - start).collect();
    let expected = [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811, 1_111];
    assert_eq!(after[..12], expected);
    assert_eq!(after.len(), 20);
    assert_eq!(cluster.pods.len(), REJECTED_KEPT);
}

/// Checks F6: one Pod of each attempt is kept, so the attempts of a large set are counted, too.
#[test]
fn a_large_set_backs_off_as_a_small_one_and_keeps_as_few_rejected_pods() {
    let mut cluster = Cluster::new(300);
    let created = reject_all_for(&mut cluster, 3_600);
    let attempts: BTreeSet<_> = created.iter().collect();
    assert_eq!((attempts.len(), created.len()), (20, 20 * 300));
    assert_eq!(cluster.pods.len(), REJECTED_KEPT);
    let kept = cluster
        .pods
        .values()
        .map(|pod| pod.metadata.creation_timestamp.timestamp());
    assert_eq!(
        kept.collect::<BTreeSet<_>>().len(),
        REJECTED_KEPT,
        "one of each attempt"
    );
}

/// Checks F6.
#[test]
fn a_clock_ahead_of_the_gateways_shortens_a_delay_but_does_not_end_the_backoff() {
    let mut cluster = rejected_at(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    cluster.now += 100;
    assert_eq!(waits(&cluster), Some(200));
}

/// Checks F6.
#[test]
fn a_creation_time_in_the_future_does_not_lengthen_the_delay() {
    let mut cluster = rejected_at(&[5_000]);
    cluster.now = 1_000;
    assert_eq!(waits(&cluster), Some(1));
}

/// Checks F6.
#[test]
fn an_accepted_pod_ends_the_backoff_of_earlier_attempts_only() {
    let mut cluster = rejected_at(&[10, 20, 30]);
    cluster.set.spec.replicas = Some(2);
    assert_eq!(waits(&cluster), Some(4));
    cluster.add("accepted");
    cluster.run("accepted", "a", 30);
    assert_eq!(
        waits(&cluster),
        Some(1),
        "one attempt is as new as the accepted Pod"
    );
    cluster.change("accepted").metadata.creation_timestamp =
        Timestamp::from_second(31).unwrap().into();
    assert_eq!((waits(&cluster), creates(&cluster)), (None, 1));
    cluster.change("accepted").metadata.creation_timestamp =
        Timestamp::from_second(5).unwrap().into();
    assert_eq!(waits(&cluster), Some(4), "older than the attempts");
}

/// Checks F6.
#[test]
fn a_pod_with_a_start_time_counts_as_accepted() {
    let mut cluster = rejected_at(&[10, 20]);
    cluster.set.spec.replicas = Some(2);
    cluster.now = 21;
    cluster.add("started").spec.node_name = "a".into();
    assert_eq!(waits(&cluster), Some(1), "not accepted yet");
    cluster.change("started").status.start_time = Some(Timestamp::UNIX_EPOCH.into());
    assert_eq!((waits(&cluster), creates(&cluster)), (None, 1));
}

/// Checks F6: such a Pod is replaced at once and not deleted.
#[test]
fn a_pod_that_failed_after_a_container_ran_does_not_count_as_rejected() {
    for field in 0..3 {
        let mut cluster = rejected_at(&[100; 3 * REJECTED_KEPT]);
        cluster.set.spec.replicas = Some(1);
        for pod in cluster.pods.values_mut() {
            let mut container = ContainerStatus::default();
            match field {
                0 => container.state.terminated = Some(Default::default()),
                1 => container.state.running = Some(Default::default()),
                _ => container.last_state.terminated = Some(Default::default()),
            }
            pod.status.init_container_statuses.push(container);
        }
        assert_eq!((waits(&cluster), creates(&cluster)), (None, 1));
        cluster.reconcile();
        cluster.finish_terminating();
        assert_eq!(cluster.pods.len(), 3 * REJECTED_KEPT + 1);
    }
}

/// Checks F6.
#[test]
fn a_pod_that_failed_with_waiting_containers_counts_as_rejected() {
    let mut cluster = rejected_at(&[10, 20]);
    for pod in cluster.pods.values_mut() {
        let mut container = ContainerStatus::default();
        container.state.waiting = Some(Default::default());
        pod.status.container_statuses.push(container);
    }
    assert_eq!(waits(&cluster), Some(2));
}

/// Checks F6: as upstream's backoff of container restarts, it is reset after ten minutes.
#[test]
fn attempts_more_than_ten_minutes_apart_are_not_consecutive() {
    assert_eq!(waits(&rejected_at(&[0, 600])), Some(2));
    assert_eq!(waits(&rejected_at(&[0, 601])), Some(1));
    assert_eq!(waits(&rejected_at(&[0, 1, 700, 701])), Some(2));
}

/// Checks F6.
#[test]
fn the_longest_delay_is_five_minutes() {
    let attempts: Vec<_> = (0..40).collect();
    let mut cluster = rejected_at(&attempts);
    cluster.set.spec.replicas = Some(0);
    cluster.settle();
    cluster.finish_terminating();
    cluster.set.spec.replicas = Some(1);
    assert_eq!(plan(&cluster.world()).again, Some(Duration::from_secs(300)));
}

/// Checks F6.
#[test]
fn the_newest_rejected_pods_are_kept() {
    let attempts: Vec<_> = (0..14).collect();
    let mut cluster = rejected_at(&attempts);
    cluster.reconcile();
    cluster.finish_terminating();
    let kept: Vec<_> = cluster.pods.keys().map(String::as_str).collect();
    let newest = [
        "pod-10", "pod-11", "pod-12", "pod-13", "pod-4", "pod-5", "pod-6", "pod-7", "pod-8",
        "pod-9",
    ];
    assert_eq!(kept, newest);
}

/// Checks F6: for example a Pod with a finalizer.
#[test]
fn a_rejected_pod_that_is_being_deleted_is_not_deleted_again() {
    let mut cluster = rejected_at(&[7; REJECTED_KEPT + 3]);
    cluster.reconcile();
    let terminating = |cluster: &Cluster| {
        let pods = cluster.pods.values();
        pods.filter(|pod| pod.metadata.deletion_timestamp.is_some())
            .count()
    };
    assert_eq!(terminating(&cluster), 3);
    assert!(cluster.reconcile());
    assert_eq!(terminating(&cluster), 3);
}
