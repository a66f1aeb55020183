//! Plans as text, for readers: each with its reasons, and the status after it.

use std::fmt::Write as _;

use expect_test::expect;
use setpoint_proto::batch::Job;

use crate::decisions::cluster::{Cluster, at};

/// Reconciles until nothing is left to do but to wait. Returns the plans, and each status that is new.
fn reconciled(cluster: &mut Cluster) -> String {
    let mut text = String::new();
    for _ in 0..20 {
        let before = status(&cluster.job);
        let plan = cluster.reconcile();
        text += &plan.to_string();
        let now = status(&cluster.job);
        if now != before {
            writeln!(text, "  {now}").unwrap();
        }
        if plan.is_empty() && now == before {
            return text;
        }
    }
    panic!("no end:\n{text}");
}

/// Returns the counts, and the conditions that hold.
fn status(job: &Job) -> String {
    let status = &job.status;
    let counts = format!(
        "active {}, succeeded {}, failed {}",
        status.active, status.succeeded, status.failed
    );
    let uncounted = status.uncounted_terminated_pods.as_ref();
    let uncounted = uncounted.map_or(0, |pods| pods.succeeded.len() + pods.failed.len());
    let uncounted = (uncounted > 0).then(|| format!(", {uncounted} not counted yet"));
    let conditions = status.conditions.iter();
    let conditions = conditions.map(|one| format!(", {} ({})", one.r#type, one.reason));
    [counts]
        .into_iter()
        .chain(uncounted)
        .chain(conditions)
        .collect()
}

/// Ends the Pods that have not ended, in the order of their names, with these codes.
fn end(cluster: &mut Cluster, codes: &[i32]) {
    let names = cluster.names("Pending");
    for (name, code) in names.iter().zip(codes) {
        cluster.run(name);
        cluster.end(name, *code);
    }
}

/// Checks J4.
#[test]
fn a_pod_that_failed_is_replaced_after_a_wait_and_the_job_completes() {
    let mut cluster =
        Cluster::new(|job| (job.spec.parallelism, job.spec.completions) = (Some(2), Some(2)));
    expect![[r#"
        Create { name: "pi-d5frc", index: None, failures: None } because fewer Pods than the parallelism and the missing completions
        Create { name: "pi-hg92n", index: None, failures: None } because fewer Pods than the parallelism and the missing completions
          active 2, succeeded 0, failed 0
    "#]].assert_eq(&reconciled(&mut cluster));
    end(&mut cluster, &[1]);
    expect![[r#"
        look again after 10s
          active 1, succeeded 0, failed 0, 1 not counted yet
        Untrack(production/pi-d5frc) because its end is in the status, or does not count
        look again after 10s
        look again after 10s
          active 1, succeeded 0, failed 1
        look again after 10s
    "#]]
    .assert_eq(&reconciled(&mut cluster));
    cluster.now += 10;
    expect![[r#"
        Create { name: "pi-f6w75", index: None, failures: None } because fewer Pods than the parallelism and the missing completions
          active 2, succeeded 0, failed 1
    "#]].assert_eq(&reconciled(&mut cluster));
    end(&mut cluster, &[0, 0]);
    expect![[r#"
          active 0, succeeded 0, failed 1, 2 not counted yet, SuccessCriteriaMet (CompletionsReached)
        Untrack(production/pi-f6w75) because its end is in the status, or does not count
        Untrack(production/pi-hg92n) because its end is in the status, or does not count
          active 0, succeeded 2, failed 1, SuccessCriteriaMet (CompletionsReached), Complete (CompletionsReached)
    "#]].assert_eq(&reconciled(&mut cluster));
}

/// Checks J4.
#[test]
fn a_job_with_a_failure_too_many_stops_its_other_pods_and_is_deleted_after_its_time_to_live() {
    let mut cluster = Cluster::indexed(2, |job| {
        job.spec.backoff_limit = Some(0);
        job.spec.ttl_seconds_after_finished = Some(60);
    });
    expect![[r#"
        Create { name: "pi-0-d5frc", index: Some(0), failures: None } because fewer Pods than the parallelism and the missing completions
        Create { name: "pi-1-hg92n", index: Some(1), failures: None } because fewer Pods than the parallelism and the missing completions
          active 2, succeeded 0, failed 0
    "#]].assert_eq(&reconciled(&mut cluster));
    end(&mut cluster, &[1]);
    expect![[r#"
          active 1, succeeded 0, failed 0, 2 not counted yet, FailureTarget (BackoffLimitExceeded)
        Untrack(production/pi-0-d5frc) because its end is in the status, or does not count
        Discard(production/pi-1-hg92n) because the Job has succeeded or failed
          active 0, succeeded 0, failed 2, FailureTarget (BackoffLimitExceeded), Failed (BackoffLimitExceeded)
        look again after 60s
    "#]].assert_eq(&reconciled(&mut cluster));
    cluster.now += 60;
    expect![[r#"
        DeleteJob because its time to live after its end is over
    "#]]
    .assert_eq(&cluster.plan().to_string());
    cluster.job.metadata.deletion_timestamp = Some(at(cluster.now).into());
    expect![].assert_eq(&cluster.plan().to_string());
}
