//! Validation of the status. Most rules apply only to fields that have changed, so that a status that violates a rule
//! since the spec was changed can still be written.

use std::collections::BTreeSet;

use setpoint_model::condition;
use setpoint_proto::batch::{Job, JobStatus};
use setpoint_proto::meta::Time;

use super::{indexes, spec};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const COMPLETE: &str = "Complete";
const FAILED: &str = "Failed";
const FAILURE_TARGET: &str = "FailureTarget";
const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";

/// The conditions of a status that hold.
struct Conditions {
    complete: bool,
    failed: bool,
    failure_target: bool,
    success_criteria_met: bool,
}

impl Conditions {
    fn of(status: &JobStatus) -> Self {
        let has = |kind| condition::is_true(&status.conditions, kind);
        Self {
            complete: has(COMPLETE),
            failed: has(FAILED),
            failure_target: has(FAILURE_TARGET),
            success_criteria_met: has(SUCCESS_CRITERIA_MET),
        }
    }

    const fn is_finished(&self) -> bool {
        self.complete || self.failed
    }
}

/// A change of the status.
struct Change<'a> {
    job: &'a Job,
    new: &'a JobStatus,
    old: &'a JobStatus,
    now: Conditions,
    was: Conditions,
}

/// Validates a change of the status.
pub fn validate(job: &Job, was: &Job, errors: &mut FieldErrors) {
    let change = Change {
        job,
        new: &job.status,
        old: &was.status,
        now: Conditions::of(&job.status),
        was: Conditions::of(&was.status),
    };
    let path = FieldPath::root("status");
    validate_counts(&change, &path, errors);
    validate_uncounted(change.new, &path, errors);
    validate_conditions(&change, &path.field("conditions"), errors);
    validate_lasting_conditions(&change, &path.field("conditions"), errors);
    validate_times(&change, &path, errors);
    validate_finished(&change, &path, errors);
    validate_completed_indexes(&change, &path.field("completedIndexes"), errors);
    validate_failed_indexes(&change, &path.field("failedIndexes"), errors);
}

fn validate_counts(change: &Change<'_>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (new, old) = (change.new, change.old);
    for (field, count) in [
        ("active", new.active),
        ("succeeded", new.succeeded),
        ("failed", new.failed),
        ("ready", new.ready.unwrap_or_default()),
        ("terminating", new.terminating.unwrap_or_default()),
    ] {
        errors.non_negative(&path.field(field), count);
    }
    if let Some(ready) = new.ready
        && (new.ready != old.ready || new.active != old.active)
        && ready > new.active
    {
        let detail = "cannot set more ready pods than active";
        errors.invalid(&path.field("ready"), ready, detail);
    }
    if new.failed < old.failed {
        let detail = "cannot decrease the failed counter";
        errors.invalid(&path.field("failed"), new.failed, detail);
    }
    let job = &change.job.spec;
    // A Job with as many completions as Pods at once can be scaled down.
    let is_elastic = spec::is_indexed(job) && job.completions == job.parallelism;
    if new.succeeded < old.succeeded && !is_elastic {
        let detail = "cannot decrease the succeeded counter";
        errors.invalid(&path.field("succeeded"), new.succeeded, detail);
    }
}

fn validate_uncounted(status: &JobStatus, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let Some(pods) = &status.uncounted_terminated_pods else {
        return;
    };
    let path = path.field("uncountedTerminatedPods");
    let mut seen = BTreeSet::new();
    for (field, uids) in [("succeeded", &pods.succeeded), ("failed", &pods.failed)] {
        let path = path.field(field);
        for (index, uid) in uids.iter().enumerate() {
            let path = path.index(index);
            if uid.is_empty() {
                errors.invalid(&path, uid, "must not be empty");
            } else if !seen.insert(uid) {
                errors.duplicate(&path, uid);
            }
        }
    }
}

fn validate_conditions(change: &Change<'_>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (now, was) = (&change.now, &change.was);
    let completes = now.complete != was.complete;
    let fails = now.failed != was.failed;
    let target_changes = now.failure_target != was.failure_target;
    let success_changes = now.success_criteria_met != was.success_criteria_met;
    let failed_indexes_change = change.new.failed_indexes != change.old.failed_indexes;
    for (wrong, detail) in [
        (
            (completes || fails) && now.complete && now.failed,
            "cannot set Complete=True and Failed=true conditions",
        ),
        (
            (completes || target_changes) && now.complete && now.failure_target,
            "cannot set Complete=True and FailureTarget=true conditions",
        ),
        (
            (fails || failed_indexes_change) && now.failed && !now.failure_target,
            "cannot set Failed=True condition without the FailureTarget=true condition",
        ),
        (
            (completes || success_changes) && now.complete && !now.success_criteria_met,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        ),
        (
            now.success_criteria_met && now.failed,
            "cannot set SuccessCriteriaMet=True and Failed=true conditions",
        ),
        (
            now.success_criteria_met && now.failure_target,
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        ),
        (
            change.job.spec.success_policy.is_some() && !now.success_criteria_met && now.complete,
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        ),
    ] {
        if wrong {
            errors.invalid_without_value(path, detail);
        }
    }
}

/// Validates that conditions that end a Job are not taken back.
fn validate_lasting_conditions(
    change: &Change<'_>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let (now, was) = (&change.now, &change.was);
    for (kind, held, holds) in [
        (FAILED, was.failed, now.failed),
        (COMPLETE, was.complete, now.complete),
        (FAILURE_TARGET, was.failure_target, now.failure_target),
    ] {
        if held && !holds {
            let detail = format!("cannot disable the terminal {kind}=True condition");
            errors.invalid_without_value(path, &detail);
        }
    }
    if was.success_criteria_met && !now.success_criteria_met {
        let detail = "cannot disable the SuccessCriteriaMet=True condition";
        errors.invalid_without_value(path, detail);
    }
    if was.complete && !was.success_criteria_met && now.success_criteria_met {
        let detail =
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        errors.invalid_without_value(path, detail);
    }
}

fn validate_times(change: &Change<'_>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (new, old) = (change.new, change.old);
    let (start, end) = (path.field("startTime"), path.field("completionTime"));
    let starts = new.start_time != old.start_time;
    let ends = new.completion_time != old.completion_time;
    let completes = change.now.complete != change.was.complete;
    if completes || ends {
        match &new.completion_time {
            Some(time) if !change.now.complete => {
                let detail = "cannot set completionTime when there is no Complete=True condition";
                errors.invalid(&end, time, detail);
            }
            None if change.now.complete => {
                errors.required(&end, "completionTime is required for Complete jobs");
            }
            _ => {}
        }
    }
    let instant = |time: &Option<Time>| time.as_ref().and_then(Time::timestamp);
    if (starts || ends)
        && let (Some(from), Some(to)) = (instant(&new.start_time), instant(&new.completion_time))
        && to < from
    {
        let detail = "must be equal to or after `startTime`";
        errors.invalid(&end, new.completion_time, detail);
    }
    if new.completion_time.is_some() && old.completion_time.is_some() && ends {
        errors.invalid(&end, new.completion_time, "field is immutable");
    }
    let suspended = |status: &JobStatus| {
        condition::get(&status.conditions, "Suspended").map(|condition| condition.status.clone())
    };
    let resumes =
        suspended(old).as_deref() == Some("True") && suspended(new).as_deref() == Some("False");
    let is_suspended = change.job.spec.suspend == Some(true);
    if starts && !resumes && old.start_time.is_some() && !is_suspended {
        let detail = "field is immutable for unsuspended job once set";
        errors.invalid(&start, new.start_time, detail);
    }
}

/// Validates that a finished Job has a start and no Pods.
fn validate_finished(change: &Change<'_>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (new, old) = (change.new, change.old);
    if !change.now.is_finished() {
        return;
    }
    let finishes = !change.was.is_finished();
    let job = &change.job.spec;
    let needs_no_start = job.suspend == Some(true) && job.completions == Some(0);
    if (finishes || new.active != old.active) && new.active > 0 {
        let detail = "active>0 is invalid for finished job";
        errors.invalid(&path.field("active"), new.active, detail);
    }
    if (finishes || new.start_time != old.start_time) && new.start_time.is_none() && !needs_no_start
    {
        let detail = "startTime is required for finished job";
        errors.required(&path.field("startTime"), detail);
    }
    let uncounted = &new.uncounted_terminated_pods;
    if (finishes || *uncounted != old.uncounted_terminated_pods)
        && let Some(pods) = uncounted
        && !(pods.failed.is_empty() && pods.succeeded.is_empty())
    {
        let at = path.field("uncountedTerminatedPods");
        errors.invalid(&at, pods, "must be empty for finished job");
    }
    let terminating = new.terminating.unwrap_or_default();
    if (finishes || new.terminating != old.terminating) && terminating > 0 {
        let detail = "terminating>0 is invalid for finished job";
        errors.invalid(&path.field("terminating"), terminating, detail);
    }
}

fn validate_completed_indexes(change: &Change<'_>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (new, job) = (&change.new.completed_indexes, &change.job.spec);
    if *new == change.old.completed_indexes {
        return;
    }
    if let Some(completions) = job.completions
        && let Err(error) = indexes::count(new, completions)
    {
        let detail = format!("error parsing completedIndexes: {error}");
        errors.invalid(path, new, detail);
    }
    if !new.is_empty() && !spec::is_indexed(job) {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        errors.invalid(path, new, detail);
    }
}

fn validate_failed_indexes(change: &Change<'_>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (new, job) = (change.new, &change.job.spec);
    let changed = new.failed_indexes != change.old.failed_indexes;
    let Some(failed) = &new.failed_indexes else {
        return;
    };
    if changed && job.backoff_limit_per_index.is_none() {
        let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        errors.invalid(path, failed, detail);
    }
    let Some(completions) = job.completions else {
        return;
    };
    if changed
        && job.backoff_limit_per_index.is_some()
        && let Err(error) = indexes::count(failed, completions)
    {
        let detail = format!("error parsing failedIndexes: {error}");
        errors.invalid(path, failed, detail);
    }
    if (changed || new.completed_indexes != change.old.completed_indexes)
        && let Some(index) = indexes::overlap(&new.completed_indexes, failed, completions)
    {
        let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
        errors.invalid(path, failed, detail);
    }
}
