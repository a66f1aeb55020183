//! Plans as text, for readers: each with its reasons, at a few times of a day.

use std::fmt::Write as _;

use expect_test::expect;
use setpoint_cronjob_controller::plan;

use crate::decisions::cluster::{Cluster, at};

/// The Job of 01:00.
const FIRST: &str = "report-29459580";

fn hourly(policy: &str) -> Cluster {
    let mut cluster = Cluster::new("0 * * * *");
    cluster.edit(|cronjob| cronjob.spec.concurrency_policy = policy.into());
    cluster
}

/// Returns the plans at these times of day, each executed.
fn plans(cluster: &mut Cluster, times: &[&str]) -> String {
    let mut text = String::new();
    for time in times {
        cluster.objects.now = at(&format!("2026-01-05T{time}Z"));
        write!(text, "{time}\n{}", plan(&cluster.world())).unwrap();
        cluster.reconcile();
    }
    text
}

/// Checks J3.
#[test]
fn forbid_waits_for_the_job_before_and_replace_deletes_it() {
    let mut cluster = hourly("Forbid");
    expect![[r#"
        00:30:00
        look again after 1800s
        01:00:00
        Create { name: "report-29459580", time: 2026-01-05T01:00:00Z } because a scheduled time has come
        look again after 3600s
        02:00:00
        Tell(JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid) because an earlier Job runs
        look again after 3600s
    "#]].assert_eq(&plans(&mut cluster, &["00:30:00", "01:00:00", "02:00:00"]));
    cluster.finish(FIRST, "Complete");
    expect![[r#"
        02:10:00
        Tell(SawCompletedJob: Saw completed job: report-29459580, condition: Complete) because an active Job has finished
        Create { name: "report-29459640", time: 2026-01-05T02:00:00Z } because a scheduled time has come
        look again after 3000s
    "#]].assert_eq(&plans(&mut cluster, &["02:10:00"]));
    let mut cluster = hourly("Replace");
    expect![[r#"
        01:00:00
        Create { name: "report-29459580", time: 2026-01-05T01:00:00Z } because a scheduled time has come
        look again after 3600s
        02:00:00
        Delete(production/report-29459580) because replaced at a scheduled time
        look again after 3600s
        02:00:01
        Create { name: "report-29459640", time: 2026-01-05T02:00:00Z } because a scheduled time has come
        look again after 3599s
    "#]].assert_eq(&plans(&mut cluster, &["01:00:00", "02:00:00", "02:00:01"]));
}

/// Checks J2.
#[test]
fn a_time_that_came_too_late_is_told_and_old_jobs_are_deleted() {
    let mut cluster = hourly("Allow");
    cluster.edit(|cronjob| {
        cronjob.spec.starting_deadline_seconds = Some(60);
        cronjob.spec.successful_jobs_history_limit = Some(0);
    });
    expect![[r#"
        01:00:59
        Create { name: "report-29459580", time: 2026-01-05T01:00:00Z } because a scheduled time has come
        look again after 3541s
        02:01:01
        Tell(MissSchedule: Missed scheduled time to start a job: Mon, 05 Jan 2026 02:00:00 +0000) because the deadline of a scheduled time passed
        look again after 3539s
    "#]].assert_eq(&plans(&mut cluster, &["01:00:59", "02:01:01"]));
    cluster.finish(FIRST, "Complete");
    expect![[r#"
        02:02:00
        Tell(SawCompletedJob: Saw completed job: report-29459580, condition: Complete) because an active Job has finished
        Tell(MissSchedule: Missed scheduled time to start a job: Mon, 05 Jan 2026 02:00:00 +0000) because the deadline of a scheduled time passed
        Delete(production/report-29459580) because more finished Jobs than are kept
        look again after 3480s
        02:02:01
        Tell(MissSchedule: Missed scheduled time to start a job: Mon, 05 Jan 2026 02:00:00 +0000) because the deadline of a scheduled time passed
        look again after 3479s
    "#]].assert_eq(&plans(&mut cluster, &["02:02:00", "02:02:01"]));
}
