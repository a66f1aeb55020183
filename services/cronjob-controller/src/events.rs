//! Events about a CronJob that do not follow from a write, with the reasons and messages of upstream.

use std::fmt::{self, Debug, Display};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::{JobView, job};

const DOCUMENTATION: &str = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/";

/// An Event about a CronJob.
#[derive(Clone, PartialEq, Eq)]
pub struct Note {
    /// Whether it is a warning.
    pub warns: bool,
    /// The reason.
    pub reason: &'static str,
    /// The message.
    pub message: String,
}

/// Writes the reason and the message only, since plans are printed for users.
impl Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

impl Note {
    fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            warns: false,
            reason,
            message: message.into(),
        }
    }

    fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            warns: true,
            ..Self::normal(reason, message)
        }
    }

    pub(crate) fn saw_completed(job: &JobView, outcome: job::Outcome) -> Self {
        let (name, condition) = (&job.meta.key.name, outcome.name());
        let message = format!("Saw completed job: {name}, condition: {condition}");
        Self::normal("SawCompletedJob", message)
    }

    pub(crate) fn missing(name: &str) -> Self {
        Self::normal("MissingJob", format!("Active job went missing: {name}"))
    }

    pub(crate) fn unexpected(job: &JobView) -> Self {
        let name = &job.meta.key.name;
        let message = format!("Saw a job that the controller did not create or forgot: {name}");
        Self::warning("UnexpectedJob", message)
    }

    pub(crate) fn already_active() -> Self {
        let message =
            "Not starting job because prior execution is running and concurrency policy is Forbid";
        Self::normal("JobAlreadyActive", message)
    }

    pub(crate) fn missed(time: Timestamp) -> Self {
        let time = time.to_zoned(TimeZone::UTC);
        let time = time.strftime("%a, %d %b %Y %H:%M:%S %z");
        let message = format!("Missed scheduled time to start a job: {time}");
        Self::warning("MissSchedule", message)
    }

    pub(crate) fn too_many_missed() -> Self {
        let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        Self::warning("TooManyMissedTimes", message)
    }

    pub(crate) fn unknown_zone(name: &str) -> Self {
        let message = format!("invalid timeZone: {name:?}: unknown time zone {name}");
        Self::warning("UnknownTimeZone", message)
    }

    pub(crate) fn unsupported_schedule(schedule: &str) -> Self {
        let message = format!(
            "CRON_TZ or TZ used in schedule {schedule:?} is not officially supported, see {DOCUMENTATION} for more details"
        );
        Self::warning("UnsupportedSchedule", message)
    }

    pub(crate) fn unparseable_schedule(schedule: &str, error: &dyn Display) -> Self {
        let message = format!("unparseable schedule: {schedule:?} : {error}");
        Self::warning("UnparseableSchedule", message)
    }

    pub(crate) fn invalid_schedule(schedule: &str) -> Self {
        let why = "time difference between two schedules is less than 1 second";
        Self::warning(
            "InvalidSchedule",
            format!("invalid schedule: {schedule} : {why}"),
        )
    }
}
