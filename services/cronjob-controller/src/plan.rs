//! Plan: computes which Job to create, which to delete, and what to tell the user.
#![warn(clippy::arithmetic_side_effects)]

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::Plan;
use setpoint_model::Target;

use crate::{JobView, Note, Policy, Ticks, World, job};

/// The maximum number of deletes of one reconcile.
pub const BURST: usize = 500;
/// The longest wait for a scheduled time: the clock may be set, or the machine may sleep.
const LONGEST: Duration = Duration::from_secs(3600);

/// A write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Record an Event.
    Tell(Note),
    /// Create the Job of a scheduled time.
    Create {
        /// The name that this time alone has.
        name: String,
        /// The time.
        time: Timestamp,
    },
    /// Delete a Job and its Pods.
    Delete(Target),
}

impl Action {
    /// Returns the name of the Job that the action writes.
    pub fn job(&self) -> Option<&str> {
        match self {
            Self::Tell(_) => None,
            Self::Create { name, .. } => Some(name),
            Self::Delete(job) => Some(&job.key.name),
        }
    }
}

/// Returns the Events to record, and the actions of the first of these stages that has any: replace, create, delete old
/// Jobs.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    tell_of_jobs(world, &mut plan);
    if world.cronjob.meta.deleting {
        return plan;
    }
    match Ticks::of(world) {
        Ok(ticks) => follow(world, &ticks, &mut plan),
        Err(note) => plan.step(Action::Tell(note), "a schedule without times"),
    }
    let is_write = |action: &Action| action.job().is_some();
    if !plan.steps.iter().any(|step| is_write(&step.action)) {
        for job in surplus_jobs(world).into_iter().take(BURST) {
            let delete = Action::Delete(Target::of(&job.meta));
            plan.step(delete, "more finished Jobs than are kept");
        }
    }
    plan
}

/// Tells of Jobs that become active or cease to be so without an action.
fn tell_of_jobs(world: &World, plan: &mut Plan<Action>) {
    for reference in &world.cronjob.status.active {
        let mut jobs = world.jobs.iter();
        match jobs.find(|job| job.meta.uid == reference.uid) {
            // The caches hold all that was written before the status: it is not merely late.
            None => plan.step(
                Action::Tell(Note::missing(&reference.name)),
                "an active Job is gone",
            ),
            Some(job) => {
                if let Some(outcome) = job.finished {
                    let note = Note::saw_completed(job, outcome);
                    plan.step(Action::Tell(note), "an active Job has finished");
                }
            }
        }
    }
    for job in &world.jobs {
        let expected = world.is_recorded(job) || world.is_scheduled(job);
        if job.finished.is_none() && !expected {
            let note = Note::unexpected(job);
            plan.step(Action::Tell(note), "a Job that no scheduled time has");
        }
    }
}

fn follow(world: &World, ticks: &Ticks, plan: &mut Plan<Action>) {
    let schedule = &world.cronjob.schedule;
    if schedule.contains("TZ") && !world.cronjob.suspended {
        let note = Note::unsupported_schedule(schedule);
        plan.step(Action::Tell(note), "a time zone in the schedule");
    }
    if let Some(late) = ticks.late {
        let note = Note::missed(late);
        plan.step(
            Action::Tell(note),
            "the deadline of a scheduled time passed",
        );
    }
    if let Some(time) = ticks.due.filter(|time| !world.has_job_of(*time)) {
        if ticks.too_many {
            let note = Note::too_many_missed();
            plan.step(Action::Tell(note), "more than 100 times without a Job");
        }
        start(world, time, plan);
    }
    if let Some(next) = ticks.next {
        let wait = next.duration_since(world.now);
        plan.look_again(Duration::try_from(wait).unwrap_or_default().min(LONGEST));
    }
}

/// Creates the Job of a scheduled time, or what the concurrency policy wants instead.
fn start(world: &World, time: Timestamp, plan: &mut Plan<Action>) {
    let mut active = world.active().peekable();
    match world.cronjob.policy {
        Policy::Forbid if active.peek().is_some() => {
            let note = Note::already_active();
            plan.step(Action::Tell(note), "an earlier Job runs");
        }
        Policy::Replace if active.peek().is_some() => {
            for job in active.take(BURST) {
                let delete = Action::Delete(Target::of(&job.meta));
                plan.step(delete, "replaced at a scheduled time");
            }
        }
        _ => {
            let name = world.cronjob.job_name(time);
            plan.step(Action::Create { name, time }, "a scheduled time has come");
        }
    }
}

/// Returns the finished Jobs that exceed the limits: those that started first, and then those that never did.
///
/// A Job is kept until its scheduled time is in the status: without either, it would be created again.
fn surplus_jobs(world: &World) -> Vec<&Arc<JobView>> {
    let cronjob = &world.cronjob;
    let limits = [
        (job::Outcome::Complete, cronjob.kept_successful),
        (job::Outcome::Failed, cronjob.kept_failed),
    ];
    let mut surplus = Vec::new();
    for (outcome, limit) in limits {
        let jobs = world.jobs.iter().filter(|job| !job.meta.deleting);
        let mut jobs: Vec<_> = jobs.filter(|job| job.finished == Some(outcome)).collect();
        jobs.sort_by_key(|job| (job.started.is_none(), job.started, &job.meta.key.name));
        let count = limit.map_or(0, |limit| jobs.len().saturating_sub(limit));
        let oldest = jobs.into_iter().take(count);
        surplus.extend(oldest.filter(|job| is_recorded(world, job)));
    }
    surplus
}

fn is_recorded(world: &World, job: &JobView) -> bool {
    let last = world.cronjob.last_scheduled();
    !world.is_scheduled(job) || job.scheduled <= last
}
