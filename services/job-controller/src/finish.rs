//! Finish: whether a Job ends, and why. Upstream's order of the reasons.
#![warn(clippy::arithmetic_side_effects)]

use std::time::Duration;

use setpoint_model::time;
use setpoint_proto::batch::SuccessPolicyRule;

use crate::failure_policy::{Handling, handling};
use crate::tally::{Tally, is_failed};
use crate::{Ending, Indexes, JobView, World};

/// How and why a Job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finish {
    pub ending: Ending,
    pub reason: String,
    pub message: String,
}

/// Returns the stored finish, otherwise a new one; `None` if the Job does not end.
pub(crate) fn finish(world: &World, tally: &Tally<'_>) -> Option<Finish> {
    let stored = world.job.ending().map(|(ending, condition)| Finish {
        ending,
        reason: condition.reason.clone(),
        message: condition.message.clone(),
    });
    let checks = [
        policy_failure,
        limit_failure,
        index_failure,
        policy_success,
        completion,
    ];
    stored.or_else(|| checks.iter().find_map(|check| check(world, tally)))
}

fn failure(reason: &str, message: impl Into<String>) -> Option<Finish> {
    let (reason, message) = (reason.to_owned(), message.into());
    Some(Finish {
        ending: Ending::Failure,
        reason,
        message,
    })
}

fn success(reason: &str, message: impl Into<String>) -> Option<Finish> {
    let (reason, message) = (reason.to_owned(), message.into());
    Some(Finish {
        ending: Ending::Success,
        reason,
        message,
    })
}

/// Of several failures, the message tells the one of the first Pod by name.
fn policy_failure(world: &World, _: &Tally<'_>) -> Option<Finish> {
    if world.job.failure_rules.is_empty() {
        return None;
    }
    let failed = world.owned().filter(|pod| is_failed(&world.job, pod));
    let messages = failed.filter_map(|pod| match handling(&world.job, pod) {
        Handling::FailJob(message) => Some((&pod.base.meta.key, message)),
        _ => None,
    });
    failure("PodFailurePolicy", messages.min()?.1)
}

fn limit_failure(world: &World, tally: &Tally<'_>) -> Option<Finish> {
    if tally.failed > world.job.backoff_limit || exceeds_restarts(world) {
        let message = "Job has reached the specified backoff limit";
        return failure("BackoffLimitExceeded", message);
    }
    match deadline_in(world) {
        Some(Duration::ZERO) => failure(
            "DeadlineExceeded",
            "Job was active longer than specified deadline",
        ),
        _ => None,
    }
}

/// Returns whether the containers of the Pods were restarted too often.
fn exceeds_restarts(world: &World) -> bool {
    if !world.job.restarts_containers {
        return false;
    }
    let running = world
        .owned()
        .filter(|pod| matches!(&*pod.details().phase, "Pending" | "Running"));
    let restarts = running.fold(0_i32, |sum, pod| sum.saturating_add(pod.details().restarts));
    let restarts = usize::try_from(restarts).unwrap_or_default();
    restarts >= world.job.backoff_limit.max(1)
}

/// Returns the time until the deadline of a Job that runs.
pub(crate) fn deadline_in(world: &World) -> Option<Duration> {
    let job = &world.job;
    let start = job.started().filter(|_| !job.suspended)?;
    let deadline = time::seconds_after(start, job.deadline_seconds?);
    Some(Duration::try_from(deadline.duration_since(world.now)).unwrap_or_default())
}

fn index_failure(world: &World, tally: &Tally<'_>) -> Option<Finish> {
    let (job, failed) = (&world.job, tally.failed_indexes.count());
    if job.max_failed_indexes.is_some_and(|most| failed > most) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return failure("MaxFailedIndexesExceeded", message);
    }
    let ended = failed.saturating_add(tally.completed_indexes.count());
    match failed > 0 && ended >= job.index_count() {
        true => failure("FailedIndexes", "Job has failed indexes"),
        false => None,
    }
}

fn policy_success(world: &World, tally: &Tally<'_>) -> Option<Finish> {
    let job = &world.job;
    let met = |rule: &SuccessPolicyRule| meets(rule, job, &tally.completed_indexes);
    let some = job.indexed && tally.succeeded > 0;
    let rule = job.success_rules.iter().position(met).filter(|_| some)?;
    success("SuccessPolicy", format!("Matched rules at index {rule}"))
}

/// Returns whether the completed indexes meet a rule of the success policy.
fn meets(rule: &SuccessPolicyRule, job: &JobView, completed: &Indexes) -> bool {
    let enough = |found: usize| {
        let count = rule
            .succeeded_count
            .and_then(|count| usize::try_from(count).ok());
        count.is_some_and(|count| found >= count)
    };
    let Some(wanted) = &rule.succeeded_indexes else {
        return enough(completed.count());
    };
    let wanted = Indexes::parse(wanted, job.index_count());
    let found = wanted.common(completed);
    wanted.count() > 0 && (found == wanted.count() || enough(found))
}

/// A Job without completions ends when one Pod has succeeded and no other is active.
fn completion(world: &World, tally: &Tally<'_>) -> Option<Finish> {
    let wanted = world.job.completions.unwrap_or(1);
    match tally.succeeded >= wanted && world.active().next().is_none() {
        true => success(
            "CompletionsReached",
            "Reached expected number of succeeded pods",
        ),
        false => None,
    }
}
