//! The number of Pods: parallelism, completions, backoff, suspension.

use setpoint_job_controller::Action;
use setpoint_proto::core::{Container, ContainerStatus, Pod};
use setpoint_proto::meta::Time;

use crate::decisions::cluster::{Cluster, at};

fn creates(cluster: &Cluster) -> usize {
    let steps = cluster.plan().steps;
    steps
        .iter()
        .filter(|step| matches!(step.action, Action::Create { .. }))
        .count()
}

fn deleted(cluster: &Cluster) -> Vec<String> {
    let steps = cluster.plan().steps;
    let mut names: Vec<_> = steps
        .into_iter()
        .filter_map(|step| match step.action {
            Action::Discard(it) => Some(it.pod.key.name),
            _ => None,
        })
        .collect();
    names.sort();
    names
}

#[test]
fn as_many_pods_are_active_as_are_missing_but_at_most_the_parallelism() {
    for (parallelism, completions, succeeded, active, expected) in [
        (3, Some(10), 0, 0, 3),
        (3, Some(10), 0, 2, 1),
        (3, Some(10), 8, 0, 2),
        (3, Some(2), 0, 0, 2),
        (0, Some(2), 0, 0, 0),
        (3, None, 0, 1, 2),
        (3, None, 1, 1, 0),
    ] {
        let mut cluster = Cluster::new(|job| {
            (job.spec.parallelism, job.spec.completions) = (Some(parallelism), completions);
            job.status.succeeded = succeeded;
        });
        for n in 0..active {
            cluster.add(&format!("pi-{n}"), None);
        }
        assert_eq!(
            creates(&cluster),
            expected,
            "{parallelism} {completions:?} {succeeded} {active}"
        );
    }
}

#[test]
fn created_pods_are_active_in_the_status_at_once() {
    let mut cluster =
        Cluster::new(|job| (job.spec.parallelism, job.spec.completions) = (Some(3), Some(3)));
    cluster.reconcile();
    let status = &cluster.job.status;
    assert_eq!(
        (status.active, status.ready, status.terminating),
        (3, Some(0), Some(0))
    );
    assert_eq!(
        status.start_time,
        Some(crate::decisions::cluster::at(1_000).into())
    );
}

#[test]
fn surplus_pods_that_are_the_least_far_are_deleted_first() {
    let mut cluster = Cluster::new(|job| {
        (job.spec.parallelism, job.spec.completions) = (Some(1), Some(9));
    });
    cluster.add("pi-ready", None);
    cluster.run("pi-ready");
    cluster.add("pi-pending", None);
    cluster.add("pi-bound", None).spec.node_name = "node".into();
    assert_eq!(deleted(&cluster), ["pi-bound", "pi-pending"]);
    cluster.reconcile();
    cluster.run("pi-bound");
    cluster.end("pi-bound", 1);
    (0..3).for_each(|_| _ = cluster.reconcile());
    assert_eq!(cluster.job.status.failed, 0, "deleted Pods have not failed");
}

fn restarted(name: &str) -> Vec<ContainerStatus> {
    vec![ContainerStatus {
        name: name.into(),
        restart_count: 1,
        ..Default::default()
    }]
}

fn restart_sidecar(pod: &mut Pod) {
    pod.spec.init_containers = vec![Container {
        name: "proxy".into(),
        restart_policy: Some("Always".into()),
        ..Default::default()
    }];
    pod.status.init_container_statuses = restarted("proxy");
}

/// A property of a Pod, and the change that gives it to one.
type Case = (&'static str, fn(&mut Pod));

/// Each case makes the second Pod one that goes before a Pod that has been ready for long. Without it, the first one
/// would.
#[test]
fn a_surplus_pod_is_chosen_by_the_criteria_of_upstream() {
    let cases: [Case; 8] = [
        ("no node", |pod| pod.spec.node_name.clear()),
        ("pending", |pod| pod.status.phase = "Pending".into()),
        ("not ready", |pod| pod.status.conditions.clear()),
        ("ready later", |pod| {
            pod.status.conditions[0].last_transition_time = at(1_001).into();
        }),
        ("ready since an unknown time", |pod| {
            pod.status.conditions[0].last_transition_time = Time::default();
        }),
        ("restarted", |pod| {
            pod.status.container_statuses = restarted("main");
        }),
        ("a restarted sidecar", restart_sidecar),
        ("younger", |pod| {
            pod.metadata.creation_timestamp = at(1_001).into();
        }),
    ];
    let mut cluster = Cluster::new(|job| job.spec.completions = Some(9));
    for name in ["pi-a", "pi-b"] {
        cluster.add(name, None);
        cluster.run(name);
    }
    assert_eq!(deleted(&cluster), ["pi-a"]);
    for (case, change) in cases {
        let mut cluster = cluster.clone();
        change(cluster.change("pi-b"));
        assert_eq!(deleted(&cluster), ["pi-b"], "{case}");
    }
}

#[test]
fn a_failure_delays_nothing_while_no_pod_is_missing() {
    let mut cluster = Cluster::new(|job| job.spec.completions = Some(9));
    cluster.add("pi-a", None);
    cluster.end("pi-a", 1);
    cluster.add("pi-b", None);
    assert_eq!(cluster.plan().again, None);
}

/// Checks J4.
#[test]
fn the_delay_of_replacements_doubles_with_each_failure_since_the_last_success() {
    let mut cluster = Cluster::new(|job| {
        (job.spec.parallelism, job.spec.completions) = (Some(1), Some(9));
        job.spec.backoff_limit = Some(100);
    });
    let fail = |cluster: &mut Cluster, code| {
        let name = format!("pi-{}", cluster.now);
        cluster.add(&name, None);
        cluster.run(&name);
        cluster.end(&name, code);
        let plan = cluster.plan();
        plan.again.map(|again| again.as_secs())
    };
    for expected in [10, 20, 40, 80, 160, 320, 600, 600] {
        assert_eq!(fail(&mut cluster, 1), Some(expected));
        cluster.now += expected as i64 - 1;
        assert_eq!(creates(&cluster), 0);
        assert_eq!(cluster.plan().again.unwrap().as_secs(), 1);
        cluster.now += 1;
        assert_eq!(creates(&cluster), 1);
    }
    assert_eq!(fail(&mut cluster, 0), None);
    cluster.now += 1;
    assert_eq!(fail(&mut cluster, 1), Some(10));
}

#[test]
fn a_failure_delays_the_next_pod_also_once_it_is_counted() {
    let mut cluster = Cluster::new(|job| job.spec.completions = Some(9));
    cluster.add("pi-a", None);
    cluster.end("pi-a", 1);
    (0..3).for_each(|_| _ = cluster.reconcile());
    assert_eq!(cluster.job.status.failed, 1);
    assert_eq!(cluster.plan().again.unwrap().as_secs(), 10);
}

#[test]
fn a_failure_at_the_time_of_a_success_delays_nothing() {
    let mut cluster = Cluster::new(|job| job.spec.completions = Some(9));
    for (name, code) in [("pi-a", 0), ("pi-b", 1)] {
        cluster.add(name, None);
        cluster.end(name, code);
    }
    assert_eq!(creates(&cluster), 1);
}

#[test]
fn a_pod_that_a_user_deletes_delays_the_next_and_one_that_the_controller_deletes_does_not() {
    for (tracked, expected) in [(true, 0), (false, 1)] {
        let mut cluster = Cluster::new(|_| {});
        cluster.add("pi-a", None);
        cluster.run("pi-a");
        if !tracked {
            cluster.change("pi-a").metadata.finalizers.clear();
        }
        cluster.delete("pi-a");
        assert_eq!(creates(&cluster), expected, "{tracked}");
    }
}

#[test]
fn a_suspended_job_deletes_its_active_pods() {
    let mut cluster =
        Cluster::new(|job| (job.spec.parallelism, job.spec.completions) = (Some(2), Some(2)));
    cluster.reconcile();
    cluster
        .names("Pending")
        .iter()
        .for_each(|name| cluster.run(name));
    cluster.edit(|job| job.spec.suspend = Some(true));
    assert_eq!(deleted(&cluster).len(), 2);
    cluster.reconcile();
    assert_eq!(cluster.reason("Suspended"), None, "its Pods are active yet");
    cluster.reconcile();
    assert_eq!(cluster.reason("Suspended"), Some("JobSuspended"));
    assert_eq!(
        (cluster.job.status.active, cluster.job.status.terminating),
        (0, Some(2))
    );
    assert_eq!(cluster.job.status.start_time, None);
    assert_eq!(cluster.job.status.failed, 0);
}

#[test]
fn a_resumed_job_starts_again() {
    let mut cluster = Cluster::new(|job| {
        job.spec.suspend = Some(true);
        job.spec.active_deadline_seconds = Some(10);
    });
    cluster.reconcile();
    assert_eq!(cluster.reason("Suspended"), Some("JobSuspended"));
    cluster.now += 100;
    cluster.edit(|job| job.spec.suspend = Some(false));
    cluster.reconcile();
    let status = &cluster.job.status;
    assert_eq!(
        status.start_time,
        Some(crate::decisions::cluster::at(1_100).into())
    );
    assert_eq!(
        (&*status.conditions[0].status, &*status.conditions[0].reason),
        ("False", "JobResumed")
    );
    assert_eq!(status.active, 1);
}

#[test]
fn a_terminating_pod_is_replaced_at_once_or_when_it_has_ended() {
    for (policy, indexed, expected) in [
        ("TerminatingOrFailed", false, 1),
        ("TerminatingOrFailed", true, 1),
        ("Failed", false, 0),
        ("Failed", true, 0),
    ] {
        let mut cluster = Cluster::new(|job| {
            job.spec.pod_replacement_policy = Some(policy.into());
            job.spec.completion_mode = indexed.then(|| "Indexed".into());
        });
        cluster.reconcile();
        let name = cluster.names("Pending").remove(0);
        cluster.run(&name);
        cluster.delete(&name);
        cluster.now += 10;
        assert_eq!(creates(&cluster), expected, "{policy} {indexed}");
        cluster.end(&name, 1);
        cluster.now += 10;
        assert_eq!(creates(&cluster), 1, "{policy} {indexed}");
    }
}
