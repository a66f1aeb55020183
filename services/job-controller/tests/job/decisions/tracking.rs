//! Finalizers, and the uids in the status.

use setpoint_controller::View as _;
use setpoint_job_controller::{Action, BURST, TRACKING};
use setpoint_proto::batch::UncountedTerminatedPods;

use crate::decisions::cluster::Cluster;

fn uncounted(cluster: &Cluster) -> UncountedTerminatedPods {
    let status = &cluster.job.status;
    status.uncounted_terminated_pods.clone().unwrap_or_default()
}

/// Checks J4.
#[test]
fn a_pod_is_stored_as_uncounted_then_loses_its_finalizer_then_is_counted() {
    let mut cluster = Cluster::new(|job| job.spec.completions = Some(2));
    cluster.reconcile();
    let name = cluster.names("Pending").remove(0);
    cluster.run(&name);
    cluster.end(&name, 0);
    let uid = cluster.pods[&name].metadata.uid.clone();

    cluster.reconcile();
    assert_eq!(uncounted(&cluster).succeeded, [uid]);
    assert_eq!(cluster.job.status.succeeded, 0);
    assert_eq!(cluster.pods[&name].metadata.finalizers, [TRACKING]);

    cluster.reconcile();
    assert_eq!(cluster.pods[&name].metadata.finalizers, [""; 0]);
    assert_eq!(cluster.job.status.succeeded, 0);

    cluster.reconcile();
    assert_eq!(uncounted(&cluster), UncountedTerminatedPods::default());
    assert_eq!(cluster.job.status.succeeded, 1);
}

#[test]
fn other_finalizers_are_kept() {
    let mut cluster = Cluster::new(|_| {});
    cluster
        .add("pi-a", None)
        .metadata
        .finalizers
        .push("example.com/other".into());
    cluster.end("pi-a", 1);
    (0..3).for_each(|_| _ = cluster.reconcile());
    assert_eq!(
        cluster.pods["pi-a"].metadata.finalizers,
        ["example.com/other"]
    );
}

#[test]
fn the_number_of_uncounted_pods_is_limited() {
    let mut cluster = Cluster::new(|job| job.spec.backoff_limit = Some(10_000));
    for n in 0..BURST + 10 {
        cluster.add(&format!("pi-{n}"), None);
        cluster.end(&format!("pi-{n}"), 1);
    }
    cluster.reconcile();
    assert_eq!(uncounted(&cluster).failed.len(), BURST);
    (0..4).for_each(|_| _ = cluster.reconcile());
    assert_eq!(cluster.job.status.failed as usize, BURST + 10);
}

#[test]
fn a_deleted_job_keeps_no_pod() {
    let mut cluster = Cluster::new(|job| job.spec.parallelism = Some(2));
    cluster.add("pi-a", None);
    cluster.add("pi-b", None);
    cluster.end("pi-b", 0);
    cluster.edit(|job| job.metadata.deletion_timestamp = Some(Default::default()));
    (0..3).for_each(|_| _ = cluster.reconcile());
    assert!(
        cluster
            .pods
            .values()
            .all(|pod| pod.metadata.finalizers.is_empty())
    );
    assert_eq!(cluster.job.status.succeeded, 1);
    assert!(cluster.plan().is_empty(), "no Pod is created");
}

#[test]
fn the_job_of_another_controller_is_left_alone() {
    let mut cluster = Cluster::new(|job| job.spec.managed_by = Some("example.com/other".into()));
    cluster.reconcile();
    assert!(cluster.pods.is_empty());
    assert_eq!(cluster.job.status, Default::default());
}

#[test]
fn an_active_pod_without_the_finalizer_is_deleted() {
    let mut cluster = Cluster::new(|_| {});
    cluster.add("pi-a", None).metadata.finalizers.clear();
    let plan = cluster.plan();
    assert!(matches!(&plan.steps[..], [step] if matches!(step.action, Action::Discard(_))));
}

#[test]
fn orphans_are_adopted_and_strangers_released() {
    let mut cluster = Cluster::new(|_| {});
    cluster.add("pi-a", None).metadata.owner_references.clear();
    cluster.add("pi-b", None).metadata.labels.clear();
    let actions: Vec<_> = cluster
        .plan()
        .steps
        .into_iter()
        .map(|step| step.action)
        .collect();
    assert!(
        matches!(&actions[..], [Action::Adopt(a), Action::Release(b)] if a.key.name == "pi-a" && b.key.name == "pi-b")
    );
}

#[test]
fn a_job_that_is_being_deleted_creates_no_pod_and_is_not_suspended() {
    let mut cluster = Cluster::new(|job| job.spec.suspend = Some(true));
    cluster.edit(|job| job.metadata.deletion_timestamp = Some(Default::default()));
    cluster.reconcile();
    assert_eq!(cluster.reason("Suspended"), None);
    cluster.edit(|job| job.spec.suspend = Some(false));
    assert!(cluster.plan().is_empty());
}

/// Checks J4.
#[test]
fn a_pod_that_is_deleted_while_it_runs_has_failed_unless_only_ended_pods_are_replaced() {
    for (policy, ends, counts) in [
        ("TerminatingOrFailed", None, (0, 1)),
        ("Failed", None, (0, 0)),
        ("TerminatingOrFailed", Some(0), (1, 0)),
        ("Failed", Some(1), (0, 1)),
    ] {
        let mut cluster = Cluster::new(|job| {
            job.spec.pod_replacement_policy = Some(policy.into());
            job.spec.completions = Some(9);
        });
        cluster.add("pi-a", None);
        cluster.run("pi-a");
        if let Some(code) = ends {
            cluster.end("pi-a", code);
        }
        cluster.delete("pi-a");
        cluster.reconcile();
        let UncountedTerminatedPods { succeeded, failed } = uncounted(&cluster);
        assert_eq!((succeeded.len(), failed.len()), counts, "{policy} {ends:?}");
    }
}

/// The garbage collector would not find a Pod that was released.
#[test]
fn a_deleted_job_releases_no_pod() {
    let mut cluster = Cluster::new(|_| {});
    cluster.add("pi-a", None).metadata.labels.clear();
    cluster.edit(|job| job.metadata.deletion_timestamp = Some(Default::default()));
    let plan = cluster.plan();
    let steps: Vec<_> = plan.steps.iter().map(|step| &step.action).collect();
    assert!(matches!(steps[..], [Action::Untrack(it)] if it.pod.key.name == "pi-a"));
}

#[test]
fn details_are_kept_only_of_pods_that_a_job_may_have() {
    let mut cluster = Cluster::new(|_| {});
    let mut pod = cluster.add("pi-a", None).clone();
    let view = setpoint_job_controller::JobPodView::of(pod.clone());
    assert_eq!(
        (view.tag(), view.is_tracked()),
        (Some("production/pi"), true)
    );
    pod.metadata.owner_references[0].kind = "ReplicaSet".into();
    let view = setpoint_job_controller::JobPodView::of(pod.clone());
    assert_eq!((view.tag(), view.is_tracked()), (None, false));
    assert_eq!(view.base.labels, Default::default());
    pod.metadata.owner_references.clear();
    let view = setpoint_job_controller::JobPodView::of(pod);
    assert_eq!((view.tag(), view.is_tracked()), (Some("production"), true));
}

#[test]
fn all_pods_of_a_failed_job_are_counted_even_if_their_uids_do_not_fit_into_its_status() {
    let mut cluster = Cluster::new(|job| {
        job.spec.active_deadline_seconds = Some(1);
        job.spec.parallelism = Some(10_000);
        job.spec.completions = Some(10_000);
        job.status.start_time = Some(crate::decisions::cluster::at(0).into());
    });
    let names: Vec<_> = (0..BURST + 10).map(|n| format!("pi-{n}")).collect();
    for name in &names {
        cluster.add(name, None);
        cluster.run(name);
    }
    (0..2).for_each(|_| _ = cluster.reconcile());
    cluster.sync_job();
    cluster.sync_pods();
    // Enough writes to discard the others, and none to store their uids then.
    cluster.reconcile_cached(20);
    names.iter().for_each(|name| cluster.end(name, 1));
    (0..5).for_each(|_| _ = cluster.reconcile());
    assert_eq!(cluster.reason("Failed"), Some("DeadlineExceeded"));
    assert_eq!(cluster.job.status.failed as usize, BURST + 10);
}
