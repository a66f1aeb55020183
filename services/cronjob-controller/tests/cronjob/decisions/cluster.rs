//! Simulates the gateway for one CronJob and its Jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use setpoint_controller::{Outcome, View};
use setpoint_cronjob_controller::{Action, CronJobView, JobView, World, plan, status};
use setpoint_model::{Target, owner};
use setpoint_proto::batch::{CronJob, Job, JobCondition};
use setpoint_proto::{ApiError, Reason};

/// The creation time of the CronJob: a Monday.
pub const CREATED: &str = "2026-01-05T00:00:00Z";

#[derive(Clone, Debug)]
pub struct Cluster {
    pub cronjob: CronJob,
    pub jobs: BTreeMap<String, Job>,
    pub now: Timestamp,
    /// When the schedule was changed.
    pub changed: Option<Timestamp>,
    revision: u64,
}

pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

impl Cluster {
    pub fn new(schedule: &str) -> Self {
        let mut cronjob = CronJob::default();
        let meta = &mut cronjob.metadata;
        (meta.name, meta.namespace) = ("report".into(), "production".into());
        meta.uid = "cronjob-uid".into();
        meta.creation_timestamp = at(CREATED).into();
        cronjob.spec.schedule = schedule.into();
        cronjob.spec.concurrency_policy = "Allow".into();
        cronjob.spec.successful_jobs_history_limit = Some(3);
        cronjob.spec.failed_jobs_history_limit = Some(1);
        Self {
            cronjob,
            jobs: BTreeMap::new(),
            now: at(CREATED),
            changed: None,
            revision: 0,
        }
    }

    /// Adds a Job that the CronJob controls.
    pub fn add(&mut self, name: &str) -> &mut Job {
        self.revision += 1;
        let mut job = Job::default();
        (job.metadata.name, job.metadata.namespace) = (name.into(), "production".into());
        job.metadata.uid = format!("{name}-{}", self.revision);
        job.metadata.creation_timestamp = self.now.into();
        job.metadata.owner_references = vec![owner::reference_to(&self.cronjob)];
        self.jobs.insert(name.into(), job);
        self.change(name)
    }

    /// Adds the Job of a scheduled time.
    pub fn add_scheduled(&mut self, time: Timestamp) -> &mut Job {
        let name = format!("report-{}", time.as_second() / 60);
        let job = self.add(&name);
        let annotation = "batch.kubernetes.io/cronjob-scheduled-timestamp";
        job.metadata
            .annotations
            .insert(annotation.into(), time.to_string());
        job
    }

    /// Returns a Job to be changed, with a new resourceVersion.
    pub fn change(&mut self, name: &str) -> &mut Job {
        self.revision += 1;
        let job = self.jobs.get_mut(name).unwrap();
        job.metadata.resource_version = self.revision.to_string();
        job
    }

    /// Finishes a Job.
    pub fn finish(&mut self, name: &str, condition: &str) {
        let now = self.now;
        let status = &mut self.change(name).status;
        status.start_time.get_or_insert(now.into());
        if condition == "Complete" {
            status.completion_time = Some(now.into());
        }
        status.conditions.push(JobCondition {
            r#type: condition.into(),
            status: "True".into(),
            ..Default::default()
        });
    }

    pub fn world(&self) -> World {
        let jobs = self.jobs.values().cloned().map(JobView::of);
        World {
            cronjob: Arc::new(CronJobView::of(self.cronjob.clone())),
            jobs: jobs.map(Arc::new).collect(),
            changed: self.changed,
            local: TimeZone::UTC,
            now: self.now,
        }
    }

    /// Applies an action as the gateway does.
    pub fn apply(&mut self, action: &Action) -> Result<(), ApiError> {
        match action {
            Action::Tell(_) => {}
            Action::Create { name, time } => {
                if !self.jobs.contains_key(name) {
                    assert_eq!(self.add_scheduled(*time).metadata.name, *name);
                }
            }
            Action::Delete(job) => match self.jobs.get(&job.key.name) {
                None => {}
                Some(found) if Target::of(&JobView::of(found.clone()).meta) == *job => {
                    self.jobs.remove(&job.key.name);
                }
                Some(_) => return Err(ApiError::new(Reason::Conflict, "changed")),
            },
        }
        Ok(())
    }

    /// Reconciles once and writes the status. Returns the actions.
    pub fn reconcile(&mut self) -> Vec<Action> {
        let world = self.world();
        let plan = plan(&world);
        for step in &plan.steps {
            self.apply(&step.action).unwrap();
        }
        let outcome = Outcome {
            done: plan.steps.len(),
            ..Outcome::of(plan)
        };
        if let Some(status) = status(&world, &outcome) {
            self.cronjob.status = status;
        }
        let steps = outcome.plan.steps.into_iter();
        steps.map(|step| step.action).collect()
    }

    /// Reconciles until nothing is written. Returns the actions.
    pub fn settle(&mut self) -> Vec<Action> {
        let mut done = Vec::new();
        for _ in 0..8 {
            let before = (self.cronjob.status.clone(), self.jobs.len());
            let actions = self.reconcile();
            let wrote = actions.iter().any(|action| action.job().is_some());
            done.extend(actions);
            if !wrote && before == (self.cronjob.status.clone(), self.jobs.len()) {
                return done;
            }
        }
        panic!("did not settle: {self:#?}");
    }

    /// Settles at a time. Returns the reasons of the Events and the names of the Jobs that were created (`+`) and
    /// deleted (`-`).
    pub fn settle_at(&mut self, time: &str) -> Vec<String> {
        self.now = at(time);
        let mut said: Vec<_> = self.settle().iter().map(brief).collect();
        said.dedup();
        said
    }

    pub fn active(&self) -> Vec<&str> {
        let active = self.cronjob.status.active.iter();
        active.map(|job| &*job.name).collect()
    }

    pub fn last_scheduled(&self) -> Option<Timestamp> {
        self.cronjob.status.last_schedule_time.as_ref()?.timestamp()
    }
}

pub fn brief(action: &Action) -> String {
    match action {
        Action::Tell(note) => note.reason.to_owned(),
        Action::Create { name, .. } => format!("+{name}"),
        Action::Delete(job) => format!("-{}", job.key.name),
    }
}
