//! Status: computes the status of a Job.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::HashSet;
use std::sync::Arc;

use setpoint_controller::Outcome;
use setpoint_model::condition::{self, FALSE, TRUE};
use setpoint_proto::batch::{JobCondition, JobStatus, UncountedTerminatedPods};
use setpoint_workload::{self as workload, saturate};

use crate::finish::{Finish, finish};
use crate::job::{COMPLETE, FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET, SUSPENDED};
use crate::tally::{Count, Tally};
use crate::{Action, BURST, Ending, JobPodView, World};

/// Returns the status that must be written; `None` if it has not changed.
///
/// The created Pods are counted as active at once. Deleted ones still are until the next reconcile.
pub fn status(world: &World, outcome: &Outcome<Action>) -> Option<JobStatus> {
    let job = &world.job;
    if !job.is_managed() {
        return None;
    }
    let tally = Tally::of(world);
    let finish = finish(world, &tally);
    let mut status = job.status.clone();
    let active = world.active().count();
    let ready = world.active().filter(|pod| pod.base.ready_since.is_some());
    status.ready = Some(workload::count(ready));
    status.active = saturate(active.saturating_add(created(outcome)));
    status.terminating = Some(workload::count(world.terminating()));
    if !job.suspended && status.start_time.is_none() {
        status.start_time = Some(world.now.into());
    }
    count(world, &tally, finish.as_ref(), &mut status);
    match &finish {
        Some(finish) => end(world, finish, &mut status),
        None if !job.meta.deleting => report_suspension(world, &mut status),
        None => {}
    }
    (status != job.status).then_some(status)
}

/// Returns the number of Pods that the plan has created; zero if a step failed, since it is not known which.
fn created(outcome: &Outcome<Action>) -> usize {
    let steps = outcome.plan.steps.iter();
    let creates = steps
        .filter(|step| matches!(step.action, Action::Create { .. }))
        .count();
    match outcome.done == outcome.plan.steps.len() {
        true => creates,
        false => 0,
    }
}

/// Counts the Pods whose finalizer is gone, and stores the uids of those that have ended since.
fn count(world: &World, tally: &Tally<'_>, finish: Option<&Finish>, status: &mut JobStatus) {
    let tracked: HashSet<_> = world.tracked().map(|pod| &*pod.base.meta.uid).collect();
    let UncountedTerminatedPods {
        mut succeeded,
        mut failed,
    } = status.uncounted_terminated_pods.take().unwrap_or_default();
    let counted = release(&mut succeeded, &tracked);
    status.succeeded = status.succeeded.saturating_add(counted);
    status.failed = status.failed.saturating_add(release(&mut failed, &tracked));
    let ending = finish.map(|finish| finish.ending);
    for pod in in_order(world) {
        if tally.is_stored(pod) || succeeded.len().saturating_add(failed.len()) >= BURST {
            continue;
        }
        match tally.count(pod, ending) {
            Some(Count::Success) if !world.job.indexed => succeeded.push(pod.base.meta.uid.clone()),
            Some(Count::Failure) => failed.push(pod.base.meta.uid.clone()),
            _ => {}
        }
    }
    if world.job.indexed {
        status.succeeded = saturate(tally.succeeded);
        status.completed_indexes = tally.completed_indexes.to_string();
        let limited = world.job.backoff_limit_per_index;
        status.failed_indexes = limited.map(|_| tally.failed_indexes.to_string());
    }
    status.uncounted_terminated_pods = Some(UncountedTerminatedPods { succeeded, failed });
}

/// Removes the uids of Pods that are no longer tracked, and returns their number.
fn release(uids: &mut Vec<String>, tracked: &HashSet<&str>) -> i32 {
    let before = uids.len();
    uids.retain(|uid| tracked.contains(&**uid));
    saturate(before.saturating_sub(uids.len()))
}

/// Returns the tracked Pods by index and uid, whatever their order in the cache.
fn in_order(world: &World) -> Vec<&Arc<JobPodView>> {
    let mut pods: Vec<_> = world.tracked().collect();
    pods.sort_by_key(|pod| (pod.details().index, &pod.base.meta.uid));
    pods
}

/// Sets the condition of a Job that ends; once that is stored and no Pod is left, the one of a Job that has ended.
fn end(world: &World, finish: &Finish, status: &mut JobStatus) {
    let job = &world.job;
    let (first, last) = match finish.ending {
        Ending::Success => (SUCCESS_CRITERIA_MET, COMPLETE),
        Ending::Failure => (FAILURE_TARGET, FAILED),
    };
    set(world, status, first, TRUE, &finish.reason, &finish.message);
    let left = world
        .owned()
        .any(|pod| pod.is_tracked() || pod.base.is_active() || pod.base.is_terminating());
    if job.ending().is_none() || left {
        return;
    }
    set(world, status, last, TRUE, &finish.reason, &finish.message);
    if finish.ending == Ending::Success {
        status.completion_time = Some(world.now.into());
    }
    // A finished Job must have a start, unless it is suspended and had nothing to do.
    if status.start_time.is_none() && job.completions != Some(0) {
        status.start_time = Some(world.now.into());
    }
}

/// Sets whether the Job is suspended, which it is when it has no active Pod.
fn report_suspension(world: &World, status: &mut JobStatus) {
    let was = condition::is_true(&status.conditions, SUSPENDED);
    match world.job.suspended {
        true if !was && world.active().next().is_none() => {
            set(
                world,
                status,
                SUSPENDED,
                TRUE,
                "JobSuspended",
                "Job suspended",
            );
            status.start_time = None;
        }
        false if was => {
            set(world, status, SUSPENDED, FALSE, "JobResumed", "Job resumed");
            // The deadline does not include the suspension.
            status.start_time = Some(world.now.into());
        }
        _ => {}
    }
}

fn set(world: &World, to: &mut JobStatus, kind: &str, holds: &str, reason: &str, message: &str) {
    let condition = JobCondition {
        r#type: kind.to_owned(),
        status: holds.to_owned(),
        last_probe_time: world.now.into(),
        last_transition_time: world.now.into(),
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    condition::set(&mut to.conditions, condition);
}
