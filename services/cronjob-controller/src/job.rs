//! A view of a Job.

use std::mem;

use jiff::Timestamp;
use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_model::condition::TRUE;
use setpoint_proto::batch::Job;

/// The annotation of a Job with its scheduled time.
pub(crate) const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// How a Job has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Complete,
    /// It failed.
    Failed,
}

impl Outcome {
    /// Returns the type of the condition.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "Complete",
            Self::Failed => "Failed",
        }
    }
}

/// The fields of a Job that the controller reads.
#[derive(Clone, Debug, PartialEq)]
pub struct JobView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// The time for which a CronJob has created it.
    pub scheduled: Option<Timestamp>,
    /// How it has finished; `None` if it has not.
    pub finished: Option<Outcome>,
    /// When it started.
    pub started: Option<Timestamp>,
    /// When it succeeded.
    pub completed: Option<Timestamp>,
}

impl View for JobView {
    type Object = Job;

    fn of(job: Job) -> Self {
        let mut meta = Meta::of(&job.metadata);
        meta.labels.clear();
        let scheduled = mem::take(&mut meta.annotations).remove(SCHEDULED);
        Self {
            meta,
            scheduled: scheduled.and_then(|time| time.parse().ok()),
            finished: finished(&job),
            started: job.status.start_time.and_then(|time| time.timestamp()),
            completed: job.status.completion_time.and_then(|time| time.timestamp()),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

fn finished(job: &Job) -> Option<Outcome> {
    let mut conditions = job.status.conditions.iter();
    conditions.find_map(|condition| match (&*condition.r#type, &*condition.status) {
        ("Complete", TRUE) => Some(Outcome::Complete),
        ("Failed", TRUE) => Some(Outcome::Failed),
        _ => None,
    })
}
