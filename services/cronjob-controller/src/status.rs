//! Status: computes the status of a CronJob.
#![warn(clippy::arithmetic_side_effects)]

use jiff::Timestamp;
use setpoint_controller::{Outcome, events};
use setpoint_proto::batch::{CronJobStatus, Job};
use setpoint_proto::core::ObjectReference;
use setpoint_proto::meta::Time;

use crate::{Action, JobView, Ticks, World, job};

/// Returns the status that must be written; `None` if it has not changed. Its times never go back.
pub fn status(world: &World, outcome: &Outcome<Action>) -> Option<CronJobStatus> {
    let old = &world.cronjob.status;
    let mut status = old.clone();
    status.active = active(world, outcome);
    advance(&mut status.last_schedule_time, scheduled(world, outcome));
    advance(&mut status.last_successful_time, succeeded(world));
    (status != *old).then_some(status)
}

/// Sets a time if it is later.
fn advance(time: &mut Option<Time>, to: Option<Timestamp>) {
    let known = time.as_ref().and_then(Time::timestamp);
    if to > known {
        *time = to.map(Time::from);
    }
}

/// Returns the references to the active Jobs; those that are in the status already stay as they are.
fn active(world: &World, outcome: &Outcome<Action>) -> Vec<ObjectReference> {
    let replaced = |job: &JobView| {
        let steps = outcome.plan.steps.iter();
        let mut deleted = steps.filter_map(|step| match &step.action {
            Action::Delete(job) => Some(&job.uid),
            _ => None,
        });
        outcome.failed.is_none() && deleted.any(|uid| *uid == job.meta.uid)
    };
    let jobs: Vec<_> = world.active().filter(|job| !replaced(job)).collect();
    let is_active =
        |reference: &ObjectReference| jobs.iter().any(|job| job.meta.uid == reference.uid);
    let known = world.cronjob.status.active.iter();
    let known = known.filter(|reference| is_active(reference)).cloned();
    let new = jobs.iter().filter(|job| !world.is_recorded(job));
    let mut new: Vec<_> = new.map(|job| events::reference::<Job>(&job.meta)).collect();
    new.sort_by(|a, b| a.name.cmp(&b.name));
    known.chain(new).collect()
}

/// Returns the last time that has a Job: one that was observed, or that of a Job that was just created.
fn scheduled(world: &World, outcome: &Outcome<Action>) -> Option<Timestamp> {
    let mut steps = outcome.plan.steps.iter();
    let created = steps.find_map(|step| match step.action {
        Action::Create { time, .. } => Some(time),
        _ => None,
    });
    let created = created.filter(|_| outcome.failed.is_none());
    // Another time of the same minute has its Job.
    let due = match world.cronjob.meta.deleting {
        true => None,
        false => Ticks::of(world).ok().and_then(|ticks| ticks.due),
    };
    let taken = due.filter(|time| world.has_job_of(*time));
    world.last_scheduled().max(created).max(taken)
}

fn succeeded(world: &World) -> Option<Timestamp> {
    let complete = |job: &JobView| job.finished == Some(job::Outcome::Complete);
    let jobs = world.jobs.iter().filter(|job| complete(job));
    jobs.filter_map(|job| job.completed).max()
}
