//! Pods that nodes reject, over minutes and hours of virtual time.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::cluster::Cluster;
use jiff::Timestamp;
use setpoint_proto::core::ContainerStatus;
use setpoint_replicaset_controller::{Action, KEPT, plan};

/// A node that rejects every Pod as soon as it sees it, for so long. Returns when Pods were created, in seconds.
fn rejecting(cluster: &mut Cluster, seconds: i64) -> Vec<i64> {
    let (end, mut created) = (cluster.now + seconds, Vec::new());
    for round in 0.. {
        if cluster.now >= end {
            break;
        }
        assert!(round < 1_000 && created.len() < 10_000, "a hot loop");
        let before = cluster.pods.clone();
        let again = plan(&cluster.world()).again;
        cluster.round();
        let new = cluster
            .pods
            .keys()
            .filter(|name| !before.contains_key(*name));
        created.extend(new.map(|_| cluster.now));
        cluster.reject_all();
        cluster.end();
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

/// A set that wants one Pod more, after attempts that were rejected at these seconds.
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

/// Checks F6, R8.
#[test]
fn a_node_that_rejects_every_pod_gets_a_few_and_not_hundreds() {
    let mut cluster = Cluster::new(1);
    let start = cluster.now;
    let created = rejecting(&mut cluster, 3_600);
    let after: Vec<_> = created.iter().map(|second| second - start).collect();
    let expected = [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811, 1_111];
    assert_eq!(after[..12], expected);
    assert_eq!(after.len(), 20);
    assert_eq!(cluster.pods.len(), KEPT);
}

/// Checks F6: the rejected Pods that are kept tell of many attempts, however many Pods each had.
#[test]
fn a_large_set_backs_off_as_well_and_keeps_as_few() {
    let mut cluster = Cluster::new(300);
    let created = rejecting(&mut cluster, 3_600);
    let attempts: BTreeSet<_> = created.iter().collect();
    assert_eq!((attempts.len(), created.len()), (20, 20 * 300));
    assert_eq!(cluster.pods.len(), KEPT);
    let kept = cluster
        .pods
        .values()
        .map(|pod| pod.metadata.creation_timestamp.timestamp());
    assert_eq!(
        kept.collect::<BTreeSet<_>>().len(),
        KEPT,
        "one of each attempt"
    );
}

/// Checks F6: the delays follow from the rejected Pods, so clocks that differ shorten them but do not end them.
#[test]
fn a_clock_that_runs_ahead_of_the_gateways_ends_no_backoff() {
    let mut cluster = rejected_at(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    cluster.now += 100;
    assert_eq!(waits(&cluster), Some(200));
}

/// Checks F6.
#[test]
fn a_pod_from_the_future_is_waited_for_no_longer_than_its_delay() {
    let mut cluster = rejected_at(&[5_000]);
    cluster.now = 1_000;
    assert_eq!(waits(&cluster), Some(1));
}

/// Checks F6.
#[test]
fn an_accepted_pod_ends_the_backoff_of_earlier_attempts_alone() {
    let mut cluster = rejected_at(&[10, 20, 30]);
    cluster.set.spec.replicas = Some(2);
    assert_eq!(waits(&cluster), Some(4));
    cluster.add("accepted");
    cluster.run("accepted", "a", 30);
    assert_eq!(waits(&cluster), Some(1), "one attempt is as new");
    cluster.change("accepted").metadata.creation_timestamp =
        Timestamp::from_second(31).unwrap().into();
    assert_eq!((waits(&cluster), creates(&cluster)), (None, 1));
    cluster.change("accepted").metadata.creation_timestamp =
        Timestamp::from_second(5).unwrap().into();
    assert_eq!(
        waits(&cluster),
        Some(4),
        "it says nothing of later attempts"
    );
}

/// Checks F6.
#[test]
fn a_pod_that_its_node_has_begun_to_run_counts_as_accepted() {
    let mut cluster = rejected_at(&[10, 20]);
    cluster.set.spec.replicas = Some(2);
    cluster.now = 21;
    cluster.add("started").spec.node_name = "a".into();
    assert_eq!(waits(&cluster), Some(1), "nobody has accepted it yet");
    cluster.change("started").status.start_time = Some(Timestamp::UNIX_EPOCH.into());
    assert_eq!((waits(&cluster), creates(&cluster)), (None, 1));
}

/// Checks F6: what had run and failed later is replaced at once, and is not deleted.
#[test]
fn a_pod_that_fails_after_it_ran_is_not_rejected() {
    for field in 0..3 {
        let mut cluster = rejected_at(&[100; 3 * KEPT]);
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
        cluster.round();
        cluster.end();
        assert_eq!(cluster.pods.len(), 3 * KEPT + 1);
    }
}

/// Checks F6: containers that wait have not run.
#[test]
fn a_pod_that_fails_before_its_containers_run_is_rejected() {
    let mut cluster = rejected_at(&[10, 20]);
    for pod in cluster.pods.values_mut() {
        let mut container = ContainerStatus::default();
        container.state.waiting = Some(Default::default());
        pod.status.container_statuses.push(container);
    }
    assert_eq!(waits(&cluster), Some(2));
}

/// Checks F6: like upstream's restarts of containers, ten minutes without an attempt begin anew.
#[test]
fn attempts_far_apart_are_not_consecutive() {
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
    cluster.end();
    cluster.set.spec.replicas = Some(1);
    assert_eq!(plan(&cluster.world()).again, Some(Duration::from_secs(300)));
}

/// Checks F6.
#[test]
fn the_newest_rejected_pods_are_kept() {
    let attempts: Vec<_> = (0..14).collect();
    let mut cluster = rejected_at(&attempts);
    cluster.round();
    cluster.end();
    let kept: Vec<_> = cluster.pods.keys().map(String::as_str).collect();
    let newest = [
        "pod-10", "pod-11", "pod-12", "pod-13", "pod-4", "pod-5", "pod-6", "pod-7", "pod-8",
        "pod-9",
    ];
    assert_eq!(kept, newest);
}

/// Checks F6: a Pod that a finalizer holds is not deleted over and over.
#[test]
fn a_rejected_pod_that_is_on_its_way_out_is_left_alone() {
    let mut cluster = rejected_at(&[7; KEPT + 3]);
    cluster.round();
    let leaving = |cluster: &Cluster| {
        let pods = cluster.pods.values();
        pods.filter(|pod| pod.metadata.deletion_timestamp.is_some())
            .count()
    };
    assert_eq!(leaving(&cluster), 3);
    assert!(cluster.round());
    assert_eq!(leaving(&cluster), 3);
}
