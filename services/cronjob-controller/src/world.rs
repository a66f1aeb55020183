//! Observe: takes a snapshot of a CronJob and its Jobs.
#![warn(clippy::arithmetic_side_effects)]

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use setpoint_controller::Inputs;
use setpoint_model::Key;

use crate::{CronJobView, CronJobs, JobView, Policy};

/// Everything that plan and status depend on.
#[derive(Clone, Debug)]
pub struct World {
    /// The CronJob.
    pub cronjob: Arc<CronJobView>,
    /// The Jobs that it controls, in any order.
    pub jobs: Vec<Arc<JobView>>,
    /// When the schedule was changed; `None` if that was before the leader's term.
    pub changed: Option<Timestamp>,
    /// The time zone of schedules that name none.
    pub local: TimeZone,
    /// The current time.
    pub now: Timestamp,
}

impl World {
    /// Returns a snapshot of the caches; `None` if the CronJob is gone.
    pub(crate) fn observe(
        caches: &CronJobs,
        key: &Key,
        Inputs { now, .. }: Inputs,
    ) -> Option<Self> {
        let cronjob = caches.cronjobs.get(key)?;
        Some(Self {
            jobs: caches.jobs.owned_by(&cronjob.meta.uid),
            changed: caches.schedules.changed(&cronjob, now),
            cronjob,
            local: caches.local.clone(),
            now,
        })
    }

    /// Returns the Jobs that run for a scheduled time, which the concurrency policy applies to: those in the status,
    /// and those whose creation is not in the status yet. A Job that is being replaced is none of them.
    pub fn active(&self) -> impl Iterator<Item = &Arc<JobView>> {
        let replaces = self.cronjob.policy == Policy::Replace;
        self.jobs.iter().filter(move |job| {
            let is_replaced = replaces && job.meta.deleting;
            let counts = self.is_recorded(job) || self.is_scheduled(job);
            job.finished.is_none() && counts && !is_replaced
        })
    }

    /// Returns whether a Job is in the status as active.
    pub fn is_recorded(&self, job: &JobView) -> bool {
        self.cronjob.active(&job.meta.uid).is_some()
    }

    /// Returns whether this controller has created a Job. One that a user has created from the CronJob has another
    /// name.
    pub fn is_scheduled(&self, job: &JobView) -> bool {
        let name = job.scheduled.map(|time| self.cronjob.job_name(time));
        name.as_ref() == Some(&job.meta.key.name)
    }

    /// Returns whether there is a Job of a scheduled time.
    pub fn has_job_of(&self, time: Timestamp) -> bool {
        let name = self.cronjob.job_name(time);
        self.jobs.iter().any(|job| job.meta.key.name == name)
    }

    /// Returns the last scheduled time that has a Job or had one.
    pub fn last_scheduled(&self) -> Option<Timestamp> {
        let created = self.jobs.iter().filter(|job| self.is_scheduled(job));
        let created = created.filter_map(|job| job.scheduled);
        let past = created.filter(|time| *time <= self.now);
        past.max().max(self.cronjob.last_scheduled())
    }
}
