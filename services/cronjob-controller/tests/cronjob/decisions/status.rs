//! Tests of the status.

use setpoint_controller::Outcome;
use setpoint_cronjob_controller::{plan, status};
use setpoint_proto::batch::Job;
use setpoint_proto::{ApiError, Reason};

use crate::decisions::cluster::{Cluster, at};

const JOB: &str = "report-29459580";

fn due() -> Cluster {
    let mut cluster = Cluster::new("0 * * * *");
    cluster.objects.now = at("2026-01-05T01:00:00Z");
    cluster
}

#[test]
fn a_scheduled_time_is_recorded_only_if_its_job_was_created() {
    let cluster = due();
    let world = cluster.world();
    let failed = Outcome {
        failed: Some(ApiError::new(Reason::Forbidden, "exceeded quota")),
        ..Outcome::of(plan(&world))
    };
    assert_eq!(status(&world, &failed), None);
    let reported = status(&world, &Outcome::of(plan(&world))).unwrap();
    let last = reported.last_schedule_time.unwrap().timestamp();
    assert_eq!(last, Some(at("2026-01-05T01:00:00Z")));
}

#[test]
fn an_active_job_is_referenced_by_kind_name_and_uid() {
    let mut cluster = due();
    cluster.settle();
    let active = cluster.cronjob().status.active;
    let reference = &active[0];
    let job = &cluster.jobs()[0].metadata;
    assert_eq!(
        (&*reference.kind, &*reference.api_version),
        ("Job", "batch/v1")
    );
    assert_eq!((&reference.name, &reference.uid), (&job.name, &job.uid));
    assert_eq!(reference.namespace, "production");
    cluster
        .objects
        .amend::<Job>(JOB, |job| job.metadata.labels.clear());
    cluster.settle();
    assert_eq!(cluster.cronjob().status.active, active, "it is not renewed");
}

#[test]
fn the_last_success_is_that_of_any_job_and_does_not_go_back() {
    let mut cluster = due();
    cluster.settle();
    let last = |cluster: &Cluster| {
        let time = cluster.cronjob().status.last_successful_time;
        time.and_then(|time| time.timestamp())
    };
    cluster.finish(JOB, "Failed");
    cluster.settle_at("2026-01-05T01:10:00Z");
    assert_eq!(last(&cluster), None);
    cluster.add("by-hand");
    cluster.finish("by-hand", "Complete");
    cluster.settle();
    assert_eq!(last(&cluster), Some(at("2026-01-05T01:10:00Z")));
    for job in cluster.jobs() {
        cluster.objects.remove::<Job>(&job.metadata.name);
    }
    cluster.settle();
    assert_eq!(last(&cluster), Some(at("2026-01-05T01:10:00Z")));
}

#[test]
fn a_job_whose_replacement_failed_stays_active() {
    let mut cluster = due();
    cluster.edit(|cronjob| cronjob.spec.concurrency_policy = "Replace".into());
    cluster.settle();
    cluster.objects.now = at("2026-01-05T02:00:00Z");
    let world = cluster.world();
    let outcome = Outcome::of(plan(&world));
    let failed = Outcome {
        failed: Some(ApiError::new(Reason::Conflict, "changed")),
        ..outcome.clone()
    };
    assert_eq!(status(&world, &failed), None);
    let replaced = status(&world, &outcome).unwrap();
    assert!(replaced.active.is_empty());
}

#[test]
fn an_unchanged_status_is_not_written() {
    let mut cluster = due();
    cluster.settle();
    assert_eq!(status(&cluster.world(), &Outcome::default()), None);
}
