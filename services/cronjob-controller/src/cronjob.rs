//! A view of a CronJob.

use jiff::Timestamp;
use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_proto::batch::{CronJob, CronJobStatus, JobTemplateSpec};
use setpoint_proto::core::ObjectReference;

const SECONDS_PER_MINUTE: i64 = 60;

/// What happens at a scheduled time while a Job of an earlier one runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Both run.
    Allow,
    /// The time is skipped unless the Job finishes before the next time and the deadline.
    Forbid,
    /// The running Job is deleted first.
    Replace,
}

/// The fields of a CronJob that the controller reads.
#[derive(Clone, Debug, PartialEq)]
pub struct CronJobView {
    /// The metadata.
    pub meta: Meta,
    /// The schedule, as the user wrote it.
    pub schedule: String,
    /// The name of the schedule's time zone; that of the controller otherwise.
    pub time_zone: Option<String>,
    /// Whether no Jobs are to be created.
    pub suspended: bool,
    /// What to do while a Job runs.
    pub policy: Policy,
    /// Seconds after a scheduled time during which its Job may be created.
    pub starting_deadline_seconds: Option<i64>,
    /// The number of Jobs that are kept after they succeeded; `None` for all.
    pub kept_successful: Option<usize>,
    /// The number of Jobs that are kept after they failed; `None` for all.
    pub kept_failed: Option<usize>,
    /// The template of the Jobs.
    pub template: JobTemplateSpec,
    /// The status that was last written.
    pub status: CronJobStatus,
}

impl View for CronJobView {
    type Object = CronJob;

    fn of(object: CronJob) -> Self {
        let (meta, spec) = (Meta::of(&object.metadata), object.spec);
        let kept = |limit: Option<i32>| limit.map(|limit| usize::try_from(limit).unwrap_or(0));
        Self {
            meta,
            schedule: spec.schedule,
            time_zone: spec.time_zone,
            suspended: spec.suspend.unwrap_or_default(),
            policy: policy(&spec.concurrency_policy),
            starting_deadline_seconds: spec.starting_deadline_seconds,
            kept_successful: kept(spec.successful_jobs_history_limit),
            kept_failed: kept(spec.failed_jobs_history_limit),
            template: spec.job_template,
            status: object.status,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl CronJobView {
    /// Returns the name of the Job of a scheduled time. Times of the same minute have the same Job.
    pub fn job_name(&self, time: Timestamp) -> String {
        let minutes = time.as_second().div_euclid(SECONDS_PER_MINUTE);
        format!("{}-{minutes}", self.meta.key.name)
    }

    /// Returns the last scheduled time that is recorded in the status.
    pub fn last_scheduled(&self) -> Option<Timestamp> {
        self.status.last_schedule_time.as_ref()?.timestamp()
    }

    /// Returns the reference to a Job in the status.
    pub fn active(&self, uid: &str) -> Option<&ObjectReference> {
        self.status.active.iter().find(|job| job.uid == uid)
    }
}

fn policy(policy: &str) -> Policy {
    match policy {
        "Forbid" => Policy::Forbid,
        "Replace" => Policy::Replace,
        // The gateway rejects other values.
        _ => Policy::Allow,
    }
}
