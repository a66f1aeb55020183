//! Jobs and CronJobs.

use serde_json::Value;

use super::expect;
use crate::snapshot::{Snapshot, is_true, name, number, text};
use crate::workload::{Run, Shape, Workload};

pub fn job(workload: &Workload, object: &Value, snapshot: &Snapshot) -> Vec<String> {
    let Shape::Run(run) = &workload.shape else {
        return Vec::new();
    };
    let mut findings = outcome(run, object);
    if run.ttl {
        findings.push("its time to live has passed, and it is not deleted".to_owned());
    }
    let succeeded = snapshot.controlled("pods", object);
    let succeeded = succeeded
        .filter(|pod| text(pod, "/status/phase") == "Succeeded")
        .count();
    let wanted = usize::try_from(number(object, "/status/succeeded")).unwrap_or_default();
    expect(
        &mut findings,
        "number of its Pods that have succeeded",
        succeeded,
        wanted,
    );
    findings
}

fn outcome(run: &Run, object: &Value) -> Vec<String> {
    let mut findings = at_rest(object);
    let status = |field: &str| number(object, &format!("/status/{field}"));
    match run.failing {
        Some(retries) => {
            expect(&mut findings, "Failed", is_true(object, "Failed"), true);
            expect(&mut findings, "failed", status("failed"), retries + 1);
            expect(&mut findings, "succeeded", status("succeeded"), 0);
        }
        None => {
            expect(&mut findings, "Complete", is_true(object, "Complete"), true);
            expect(
                &mut findings,
                "succeeded",
                status("succeeded"),
                run.completions,
            );
        }
    }
    if run.indexed && run.failing.is_none() {
        let all = match run.completions {
            1 => "0".to_owned(),
            2 => "0,1".to_owned(),
            more => format!("0-{}", more - 1),
        };
        expect(
            &mut findings,
            "completedIndexes",
            text(object, "/status/completedIndexes"),
            &all,
        );
    }
    findings
}

/// Returns what a finished Job must not have.
fn at_rest(object: &Value) -> Vec<String> {
    let mut findings = Vec::new();
    for field in ["active", "ready", "terminating"] {
        expect(
            &mut findings,
            field,
            number(object, &format!("/status/{field}")),
            0,
        );
    }
    for field in ["succeeded", "failed"] {
        let pointer = format!("/status/uncountedTerminatedPods/{field}/0");
        expect(&mut findings, "uncounted Pod", text(object, &pointer), "");
    }
    findings
}

pub fn cron_job(object: &Value, snapshot: &Snapshot) -> Vec<String> {
    let mut findings = Vec::new();
    expect(
        &mut findings,
        "active Job",
        text(object, "/status/active/0/name"),
        "",
    );
    let jobs: Vec<_> = snapshot.controlled("jobs", object).collect();
    let is_complete = |job: &&&Value| is_true(job, "Complete");
    for (field, complete) in [
        ("successfulJobsHistoryLimit", true),
        ("failedJobsHistoryLimit", false),
    ] {
        let kept = jobs
            .iter()
            .filter(|job| is_complete(job) == complete)
            .count();
        let limit = number(object, &format!("/spec/{field}"));
        if i64::try_from(kept).unwrap_or(i64::MAX) > limit {
            findings.push(format!("{kept} Jobs are kept with a {field} of {limit}"));
        }
    }
    for job in jobs {
        let rest = at_rest(job);
        findings.extend(
            rest.into_iter()
                .map(|finding| format!("{}: {finding}", name("its Job", job))),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(retries: Option<i64>, condition: &str, status: Value) -> Vec<String> {
        let run = Run {
            completions: 3,
            parallelism: 1,
            indexed: retries.is_none(),
            failing: retries,
            suspended: false,
            ttl: false,
            seconds: 0,
        };
        let mut status = status;
        status["conditions"] = json!([{"type": condition, "status": "True"}]);
        outcome(&run, &json!({"status": status}))
    }

    #[test]
    fn the_counts_of_a_finished_job_are_exact() {
        let complete = |succeeded| json!({"succeeded": succeeded, "completedIndexes": "0-2"});
        assert!(found(None, "Complete", complete(3)).is_empty());
        assert_eq!(found(None, "Complete", complete(4)).len(), 1);
        assert_eq!(found(None, "Failed", complete(3)).len(), 1);
        assert!(found(Some(2), "Failed", json!({"failed": 3})).is_empty());
        assert_eq!(found(Some(2), "Failed", json!({"failed": 4})).len(), 1);
        let uncounted =
            json!({"failed": 3, "active": 1, "uncountedTerminatedPods": {"failed": ["uid"]}});
        assert_eq!(found(Some(2), "Failed", uncounted).len(), 2);
    }
}
