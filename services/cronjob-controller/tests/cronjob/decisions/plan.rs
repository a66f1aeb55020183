//! Tests of the plan, by examples.

use setpoint_cronjob_controller::{Action, Note, plan};
use setpoint_proto::batch::Job;

use crate::decisions::cluster::{Cluster, at, brief};

const HOURLY: &str = "0 * * * *";
/// The names of the Jobs of 01:00, 02:00 and 03:00.
const JOBS: [&str; 3] = ["report-29459580", "report-29459640", "report-29459700"];

fn hourly(policy: &str) -> Cluster {
    let mut cluster = Cluster::new(HOURLY);
    cluster.edit(|cronjob| cronjob.spec.concurrency_policy = policy.into());
    cluster
}

fn notes(cluster: &Cluster) -> Vec<Note> {
    let steps = plan(&cluster.world()).steps.into_iter();
    let notes = steps.filter_map(|step| match step.action {
        Action::Tell(note) => Some(note),
        _ => None,
    });
    notes.collect()
}

/// Checks J1.
#[test]
fn a_scheduled_time_gets_one_job_whose_name_has_its_minutes() {
    let mut cluster = hourly("Allow");
    assert!(cluster.settle_at("2026-01-05T00:59:59.9Z").is_empty());
    let created = format!("+{}", JOBS[0]);
    assert_eq!(cluster.settle_at("2026-01-05T01:00:00Z"), [created]);
    assert_eq!(cluster.last_scheduled(), Some(at("2026-01-05T01:00:00Z")));
    assert_eq!(cluster.active(), [JOBS[0]]);
    assert!(cluster.settle_at("2026-01-05T01:00:30Z").is_empty());
}

/// Checks J1: the status was not written, or its cache lags.
#[test]
fn a_job_that_is_not_in_the_status_is_not_created_again() {
    let mut cluster = hourly("Forbid");
    cluster.objects.now = at("2026-01-05T01:00:10Z");
    cluster.add_scheduled(at("2026-01-05T01:00:00Z"));
    assert!(cluster.settle().is_empty());
    assert_eq!(cluster.active(), [JOBS[0]]);
    assert_eq!(cluster.last_scheduled(), Some(at("2026-01-05T01:00:00Z")));
}

/// Checks J1.
#[test]
fn two_times_of_one_minute_have_one_job() {
    let mut cluster = Cluster::new("@every 30s");
    let first = cluster.settle_at("2026-01-05T00:01:00Z");
    assert_eq!(first, ["+report-29459521"]);
    assert!(cluster.settle_at("2026-01-05T00:01:30Z").is_empty());
    assert_eq!(cluster.last_scheduled(), Some(at("2026-01-05T00:01:30Z")));
    let next = cluster.settle_at("2026-01-05T00:02:00Z");
    assert_eq!(next, ["+report-29459522"]);
}

#[test]
fn the_reconcile_is_repeated_at_the_next_time_and_within_an_hour() {
    let mut cluster = Cluster::new("0 3 * * *");
    let again = |cluster: &Cluster| plan(&cluster.world()).again.map(|again| again.as_secs());
    assert_eq!(again(&cluster), Some(3_600));
    cluster.objects.now = at("2026-01-05T02:58:00Z");
    assert_eq!(again(&cluster), Some(120));
    cluster.edit(|cronjob| cronjob.spec.suspend = Some(true));
    assert_eq!(again(&cluster), None);
}

/// Checks J2.
#[test]
fn more_than_a_hundred_missed_times_are_told_and_the_last_is_started() {
    let mut cluster = hourly("Allow");
    cluster.objects.now = at("2026-01-09T04:00:01Z");
    assert!(notes(&cluster).is_empty(), "these are a hundred");
    let said = cluster.settle_at("2026-01-09T05:00:01Z");
    assert_eq!(said[0], "TooManyMissedTimes");
    assert_eq!(cluster.last_scheduled(), Some(at("2026-01-09T05:00:00Z")));
    assert_eq!((said.len(), cluster.jobs().len()), (2, 1));
    assert!(cluster.settle_at("2026-01-09T05:00:02Z").is_empty());
}

/// Checks J2.
#[test]
fn a_time_after_its_deadline_is_told_and_not_started() {
    let mut cluster = hourly("Allow");
    cluster.edit(|cronjob| cronjob.spec.starting_deadline_seconds = Some(60));
    cluster.objects.now = at("2026-01-05T01:01:00Z");
    let expected = "Missed scheduled time to start a job: Mon, 05 Jan 2026 01:00:00 +0000";
    assert_eq!(notes(&cluster)[0].message, expected);
    assert_eq!(cluster.settle_at("2026-01-05T01:01:00Z"), ["MissSchedule"]);
    assert!(cluster.jobs().is_empty());
}

/// Checks J3.
#[test]
fn allow_starts_a_job_beside_an_active_one() {
    let mut cluster = hourly("Allow");
    cluster.settle_at("2026-01-05T01:00:00Z");
    cluster.settle_at("2026-01-05T02:00:00Z");
    assert_eq!(cluster.active(), JOBS[..2]);
}

/// Checks J3.
#[test]
fn forbid_waits_for_the_active_job_and_then_starts_the_last_time() {
    let mut cluster = hourly("Forbid");
    cluster.settle_at("2026-01-05T01:00:00Z");
    assert_eq!(
        cluster.settle_at("2026-01-05T02:00:00Z"),
        ["JobAlreadyActive"]
    );
    assert_eq!(
        cluster.settle_at("2026-01-05T03:00:00Z"),
        ["JobAlreadyActive"]
    );
    assert_eq!(cluster.active(), [JOBS[0]]);
    cluster.finish(JOBS[0], "Complete");
    let started = format!("+{}", JOBS[2]);
    let said = cluster.settle_at("2026-01-05T03:10:00Z");
    assert_eq!(said, ["SawCompletedJob".to_owned(), started]);
    assert_eq!(cluster.active(), [JOBS[2]]);
}

/// Checks J3.
#[test]
fn replace_deletes_the_active_job_before_it_starts_the_next() {
    let mut cluster = hourly("Replace");
    cluster.settle_at("2026-01-05T01:00:00Z");
    let said = cluster.settle_at("2026-01-05T02:00:00Z");
    assert_eq!(said, [format!("-{}", JOBS[0]), format!("+{}", JOBS[1])]);
    assert_eq!(cluster.active(), [JOBS[1]]);
    assert_eq!(cluster.jobs().len(), 1);
}

/// Checks J3: a finalizer keeps the Job.
#[test]
fn replace_does_not_wait_for_a_job_that_is_being_deleted() {
    let mut cluster = hourly("Replace");
    cluster.settle_at("2026-01-05T01:00:00Z");
    cluster.objects.amend::<Job>(JOBS[0], |job| {
        job.metadata.deletion_timestamp = Some(at("2026-01-05T01:59:00Z").into())
    });
    let said = cluster.settle_at("2026-01-05T02:00:00Z");
    assert_eq!(said, [format!("+{}", JOBS[1])]);
    assert_eq!(cluster.active(), [JOBS[1]]);
}

/// Checks J3.
#[test]
fn a_suspended_cronjob_starts_nothing_and_later_only_the_last_time() {
    let mut cluster = hourly("Allow");
    cluster.edit(|cronjob| cronjob.spec.suspend = Some(true));
    assert!(cluster.settle_at("2026-01-05T03:30:00Z").is_empty());
    cluster.edit(|cronjob| cronjob.spec.suspend = Some(false));
    let started = format!("+{}", JOBS[2]);
    assert_eq!(cluster.settle_at("2026-01-05T03:30:00Z"), [started]);
}

/// Checks J3: 02:30 does not exist in Berlin on March 29.
#[test]
fn a_time_that_the_clocks_skip_is_not_started() {
    let mut cluster = Cluster::new("30 2 * * *");
    cluster.edit(|cronjob| cronjob.spec.time_zone = Some("Europe/Berlin".into()));
    cluster.edit(|cronjob| cronjob.metadata.creation_timestamp = at("2026-03-28T12:00:00Z").into());
    assert!(cluster.settle_at("2026-03-29T23:59:00Z").is_empty());
    let said = cluster.settle_at("2026-03-30T00:30:00Z");
    assert_eq!(said, ["+report-29580510"]);
}

#[test]
fn schedules_without_times_are_told_with_the_words_of_upstream() {
    let cases = [
        (
            "0 0 30 2 *",
            None,
            "InvalidSchedule",
            "invalid schedule: 0 0 30 2 * : time difference between two schedules is less than 1 second",
        ),
        (
            "0 * * *",
            None,
            "UnparseableSchedule",
            "unparseable schedule: \"0 * * *\" : expected exactly 5 fields, found 4: [0 * * *]",
        ),
        (
            HOURLY,
            Some("Mars/Base"),
            "UnknownTimeZone",
            "invalid timeZone: \"Mars/Base\": unknown time zone Mars/Base",
        ),
        (
            "TZ=UTC 0 * * * *",
            None,
            "UnsupportedSchedule",
            "CRON_TZ or TZ used in schedule \"TZ=UTC 0 * * * *\" is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
        ),
    ];
    for (schedule, zone, reason, message) in cases {
        let mut cluster = Cluster::new(schedule);
        cluster.edit(|cronjob| cronjob.spec.time_zone = zone.map(str::to_owned));
        let notes = notes(&cluster);
        assert_eq!((notes[0].reason, &*notes[0].message), (reason, message));
        assert!(notes[0].warns && notes.len() == 1);
    }
}

#[test]
fn old_finished_jobs_are_deleted_by_their_start() {
    let mut cluster = hourly("Allow");
    cluster.edit(|cronjob| cronjob.spec.suspend = Some(true));
    for (name, condition, start) in [
        ("c", "Complete", Some("2026-01-05T00:03:00Z")),
        ("a", "Complete", Some("2026-01-05T00:01:00Z")),
        ("never", "Complete", None),
        ("b", "Complete", Some("2026-01-05T00:01:00Z")),
        ("failed", "Failed", Some("2026-01-05T00:01:00Z")),
        ("failed-later", "Failed", Some("2026-01-05T00:02:00Z")),
    ] {
        cluster.add(name);
        cluster.finish(name, condition);
        cluster.objects.amend::<Job>(name, |job| {
            job.status.start_time = start.map(|start| at(start).into())
        });
    }
    cluster.add("running");
    let said = cluster.settle_at("2026-01-05T00:10:00Z");
    assert_eq!(said, ["UnexpectedJob", "-a", "-failed", "UnexpectedJob"]);
    cluster.edit(|cronjob| cronjob.spec.successful_jobs_history_limit = Some(0));
    cluster.edit(|cronjob| cronjob.spec.failed_jobs_history_limit = None);
    cluster.settle();
    let left = cluster.jobs();
    let left: Vec<_> = left.iter().map(|job| &*job.metadata.name).collect();
    assert_eq!(left, ["failed-later", "running"]);
}

/// Checks J1.
#[test]
fn old_jobs_are_deleted_after_the_job_of_a_scheduled_time_was_created() {
    let mut cluster = hourly("Allow");
    cluster.edit(|cronjob| cronjob.spec.successful_jobs_history_limit = Some(0));
    cluster.add("old");
    cluster.finish("old", "Complete");
    cluster.objects.now = at("2026-01-05T01:00:00Z");
    let steps = plan(&cluster.world()).steps;
    let planned: Vec<_> = steps.iter().map(|step| brief(&step.action)).collect();
    assert_eq!(planned, [format!("+{}", JOBS[0])]);
    assert_eq!(cluster.settle().len(), 2);
}

/// Checks J1: with a limit of 0, the Job would be deleted and created again.
#[test]
fn a_job_is_not_deleted_before_its_time_is_in_the_status() {
    let mut cluster = hourly("Allow");
    cluster.edit(|cronjob| cronjob.spec.successful_jobs_history_limit = Some(0));
    cluster.objects.now = at("2026-01-05T01:00:10Z");
    cluster.add_scheduled(at("2026-01-05T01:00:00Z"));
    cluster.finish(JOBS[0], "Complete");
    assert!(cluster.reconcile().is_empty());
    assert_eq!(cluster.last_scheduled(), Some(at("2026-01-05T01:00:00Z")));
    let deleted = cluster.settle();
    assert_eq!(
        deleted.iter().map(brief).collect::<Vec<_>>(),
        [format!("-{}", JOBS[0])]
    );
}

/// As of `kubectl create job --from=cronjob/report`.
#[test]
fn a_job_of_a_user_is_told_of_and_kept_out_of_the_status() {
    let mut cluster = hourly("Forbid");
    cluster.add("by-hand");
    assert_eq!(cluster.settle_at("2026-01-05T00:30:00Z"), ["UnexpectedJob"]);
    assert!(cluster.active().is_empty());
    let created = format!("+{}", JOBS[0]);
    let said = cluster.settle_at("2026-01-05T01:00:00Z");
    assert_eq!(said[..2], ["UnexpectedJob".to_owned(), created]);
}

#[test]
fn active_jobs_that_finish_or_go_are_told_and_removed() {
    let mut cluster = hourly("Allow");
    cluster.settle_at("2026-01-05T01:00:00Z");
    cluster.settle_at("2026-01-05T02:00:00Z");
    cluster.finish(JOBS[0], "Failed");
    cluster.objects.remove::<Job>(JOBS[1]);
    cluster.objects.now = at("2026-01-05T02:01:00Z");
    let messages: Vec<_> = notes(&cluster)
        .into_iter()
        .map(|note| note.message)
        .collect();
    let expected = [
        format!("Saw completed job: {}, condition: Failed", JOBS[0]),
        format!("Active job went missing: {}", JOBS[1]),
    ];
    assert_eq!(messages, expected);
    cluster.settle();
    assert!(cluster.active().is_empty() && notes(&cluster).is_empty());
}

#[test]
fn a_cronjob_that_is_being_deleted_writes_only_its_status() {
    let mut cluster = hourly("Allow");
    cluster.settle_at("2026-01-05T01:00:00Z");
    cluster.finish(JOBS[0], "Complete");
    cluster.edit(|cronjob| cronjob.spec.successful_jobs_history_limit = Some(0));
    cluster.edit(|cronjob| {
        cronjob.metadata.deletion_timestamp = Some(at("2026-01-05T02:00:00Z").into())
    });
    assert_eq!(
        cluster.settle_at("2026-01-05T03:00:00Z"),
        ["SawCompletedJob"]
    );
    assert!(cluster.active().is_empty());
    assert_eq!(cluster.jobs().len(), 1);
    assert_eq!(plan(&cluster.world()).again, None);
}
