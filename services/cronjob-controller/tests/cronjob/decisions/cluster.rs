//! One CronJob and its Jobs.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use setpoint_controller::{Outcome, View};
use setpoint_cronjob_controller::{Action, CronJobView, CronJobs, World, new_job};
use setpoint_objects::{Objects, Past};
use setpoint_proto::batch::{CronJob, Job, JobCondition};
use setpoint_proto::core::Container;

/// The creation time of the CronJob: a Monday.
pub const CREATED: &str = "2026-01-05T00:00:00Z";
const NAME: &str = "report";

#[derive(Debug)]
pub struct Cluster {
    pub objects: Objects,
    /// When the schedule was changed.
    pub changed: Option<Timestamp>,
}

pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

impl Cluster {
    pub fn new(schedule: &str) -> Self {
        let mut cronjob = CronJob::default();
        cronjob.metadata.name = NAME.into();
        cronjob.spec.schedule = "0 * * * *".into();
        let pod = &mut cronjob.spec.job_template.spec.template.spec;
        pod.restart_policy = "Never".into();
        pod.containers = vec![Container {
            name: "main".into(),
            image: "report".into(),
            ..Default::default()
        }];
        let mut objects = Objects::new("production", at(CREATED));
        objects.create(cronjob).unwrap();
        let mut cluster = Self {
            objects,
            changed: None,
        };
        cluster.edit(|cronjob| cronjob.spec.schedule = schedule.into());
        cluster
    }

    pub fn cronjob(&self) -> CronJob {
        self.objects.get(NAME).unwrap()
    }

    /// Changes the CronJob, also to what is refused today.
    pub fn edit(&mut self, change: impl FnOnce(&mut CronJob)) {
        self.objects.amend(NAME, change);
    }

    /// Adds a Job that the CronJob controls.
    pub fn add(&mut self, name: &str) {
        let mut job = new_job(&self.world(), name, self.objects.now);
        job.metadata.annotations.clear();
        self.objects.create(job).unwrap();
    }

    /// Adds the Job of a scheduled time.
    pub fn add_scheduled(&mut self, time: Timestamp) {
        let name = format!("{NAME}-{}", time.as_second() / 60);
        let job = new_job(&self.world(), &name, time);
        self.objects.create(job).unwrap();
    }

    /// Finishes a Job: `Complete` or `Failed`.
    pub fn finish(&mut self, name: &str, condition: &str) {
        let now = self.objects.now;
        let is_complete = condition == "Complete";
        let before = if is_complete {
            "SuccessCriteriaMet"
        } else {
            "FailureTarget"
        };
        let conditions = [before, condition].map(|kind| JobCondition {
            r#type: kind.into(),
            status: "True".into(),
            ..Default::default()
        });
        self.objects.edit::<Job>(name, |job| {
            job.status.start_time = Some(now.into());
            job.status.completion_time = is_complete.then(|| now.into());
            job.status.conditions = conditions.into();
        });
    }

    pub fn jobs(&self) -> Vec<Arc<Job>> {
        self.objects.list()
    }

    /// Returns the newest state.
    pub fn world(&self) -> World {
        self.world_of(self.objects.newest())
    }

    /// Returns the world that caches show.
    pub fn world_of(&self, seen: Past<'_>) -> World {
        World {
            cronjob: CronJobView::of(seen.get(NAME).unwrap()).into(),
            jobs: seen.views(),
            changed: self.changed,
            local: TimeZone::UTC,
            now: self.objects.now,
        }
    }

    /// Reconciles a world. Returns the outcome.
    pub fn reconcile_world(&mut self, world: &World) -> Outcome<Action> {
        self.objects
            .reconcile::<CronJobs>(world, |objects, action| match action {
                Action::Tell(_) => Ok(()),
                Action::Create { name, time } => {
                    let job = new_job(world, name, *time);
                    objects.create_or_take(&world.cronjob.meta, job)
                }
                Action::Delete(job) => objects.delete_unchanged_with::<Job>(job, "Background"),
            })
    }

    /// Reconciles once. Returns the actions.
    pub fn reconcile(&mut self) -> Vec<Action> {
        let outcome = self.reconcile_world(&self.world());
        assert_eq!(outcome.failed, None);
        let steps = outcome.plan.steps.into_iter();
        steps.map(|step| step.action).collect()
    }

    /// Reconciles until nothing is written. Returns the actions.
    pub fn settle(&mut self) -> Vec<Action> {
        let mut done = Vec::new();
        for _ in 0..8 {
            let before = self.objects.revision();
            done.extend(self.reconcile());
            if before == self.objects.revision() {
                return done;
            }
        }
        panic!("did not settle: {self:#?}");
    }

    /// Settles at a time. Returns the reasons of the Events and the names of the Jobs that were created (`+`) and
    /// deleted (`-`).
    pub fn settle_at(&mut self, time: &str) -> Vec<String> {
        self.objects.now = at(time);
        let mut said: Vec<_> = self.settle().iter().map(brief).collect();
        said.dedup();
        said
    }

    pub fn active(&self) -> Vec<String> {
        let active = self.cronjob().status.active.into_iter();
        active.map(|job| job.name).collect()
    }

    pub fn last_scheduled(&self) -> Option<Timestamp> {
        self.cronjob().status.last_schedule_time?.timestamp()
    }
}

pub fn brief(action: &Action) -> String {
    match action {
        Action::Tell(note) => note.reason.to_owned(),
        Action::Create { name, .. } => format!("+{name}"),
        Action::Delete(job) => format!("-{}", job.key.name),
    }
}
