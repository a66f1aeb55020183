//! Finds the reasons for which a Job waits, from its status. Pure.

use setpoint_model::condition::{self, TRUE};
use setpoint_proto::batch::{Job, JobCondition, JobSpec, JobStatus};
use setpoint_proto::setpoint::Wait;

use crate::waits::wait;

/// Returns what a Job waits for; why it has failed, if it has.
pub(super) fn waits(job: &Job) -> Vec<Wait> {
    let Job { spec, status, .. } = job;
    let holds = |kind| -> Option<&JobCondition> {
        condition::get(&status.conditions, kind).filter(|condition| condition.status == TRUE)
    };
    if holds("Complete").is_some() {
        return Vec::new();
    }
    if let Some(failed) = holds("Failed") {
        return vec![wait(&failed.reason, &failed.message)];
    }
    let ends = holds("FailureTarget").or_else(|| holds("SuccessCriteriaMet"));
    if let Some(ends) = ends {
        return vec![
            wait(&ends.reason, &ends.message),
            wait("Ending", stops(status)),
        ];
    }
    let mut waits = Vec::new();
    if let Some(manager) = spec
        .managed_by
        .as_deref()
        .filter(|it| !it.starts_with("kubernetes.io/"))
    {
        waits.push(wait("ManagedBy", format!("{manager} manages it")));
    }
    waits.push(match spec.suspend == Some(true) {
        true => wait(
            "Suspended",
            "it is suspended: spec.suspend=false resumes it",
        ),
        false => wait("NotComplete", progress(spec, status)),
    });
    waits
}

fn stops(status: &JobStatus) -> String {
    let terminating = status.terminating.unwrap_or_default();
    let left = status.active.saturating_add(terminating);
    let uncounted = status.uncounted_terminated_pods.as_ref();
    let uncounted = uncounted.map_or(0, |pods| {
        pods.succeeded.len().saturating_add(pods.failed.len())
    });
    format!("{left} Pods are still to stop, and {uncounted} to be counted")
}

fn progress(spec: &JobSpec, status: &JobStatus) -> String {
    let JobStatus {
        succeeded,
        active,
        failed,
        ..
    } = status;
    let wanted = spec.completions.unwrap_or(1);
    let limit = spec.backoff_limit.unwrap_or_default();
    let ended = format!("{succeeded} of {wanted} Pods have succeeded");
    match failed {
        0 => format!("{ended}; {active} are active"),
        _ => format!("{ended}; {active} are active; {failed} have failed, of at most {limit}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use setpoint_codec::kinds;

    use super::*;

    fn reasons(spec: Value, status: Value) -> Vec<(String, String)> {
        let kind = kinds().by_any_name("jobs").unwrap();
        let json = json!({"metadata": {"name": "pi"}, "spec": spec, "status": status});
        let object = kind.from_json(json.to_string().as_bytes()).unwrap();
        let waits = waits(object.downcast_ref::<Job>().unwrap());
        waits
            .into_iter()
            .map(|wait| (wait.reason, wait.message))
            .collect()
    }

    fn condition(kind: &str) -> Value {
        json!({"type": kind, "status": "True", "reason": "Because", "message": "of this"})
    }

    #[test]
    fn a_job_waits_for_the_success_of_its_pods() {
        let spec = json!({"completions": 3, "backoffLimit": 6});
        let status = json!({"succeeded": 1, "active": 2, "failed": 4});
        let expected = "1 of 3 Pods have succeeded; 2 are active; 4 have failed, of at most 6";
        assert_eq!(
            reasons(spec, status),
            [("NotComplete".into(), expected.into())]
        );
        let suspended = reasons(json!({"suspend": true}), json!({}));
        assert_eq!(suspended[0].0, "Suspended");
        let managed = reasons(json!({"managedBy": "example.com/other"}), json!({}));
        assert_eq!(managed[0].1, "example.com/other manages it");
    }

    #[test]
    fn a_job_that_ends_waits_for_its_pods_to_stop() {
        let status = json!({
            "conditions": [condition("FailureTarget")],
            "active": 1, "terminating": 2, "uncountedTerminatedPods": {"failed": ["a"]},
        });
        let ends = [
            ("Because".into(), "of this".into()),
            (
                "Ending".into(),
                "3 Pods are still to stop, and 1 to be counted".into(),
            ),
        ];
        assert_eq!(reasons(json!({}), status), ends);
    }

    #[test]
    fn a_complete_job_waits_for_nothing_and_a_failed_one_says_why() {
        let complete =
            json!({"conditions": [condition("SuccessCriteriaMet"), condition("Complete")]});
        assert_eq!(reasons(json!({}), complete), []);
        let failed = json!({"conditions": [condition("FailureTarget"), condition("Failed")]});
        assert_eq!(
            reasons(json!({}), failed),
            [("Because".into(), "of this".into())]
        );
    }
}
