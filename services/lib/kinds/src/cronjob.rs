//! CronJob: a schedule, a time zone, and the spec of its Jobs.

mod waits;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;
use setpoint_model::cron::{self, Timetable};
use setpoint_proto::batch::{CronJob, CronJobSpec};
use setpoint_proto::setpoint::Wait;

use super::template;
use super::{Role, StoredKind, age, job, status};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::set_default;
use crate::validation::warnings::{Warnings, warn_of_pod_names};
use crate::waits::Records;

const POLICIES: &[&str] = &["Allow", "Forbid", "Replace"];

/// The length of a name: 63 for that of a Job, less the suffix with the scheduled time.
const MAX_NAME: usize = 52;
/// The length of a part of the name of a time zone.
const MAX_ZONE_PART: usize = 14;

/// The warning of a schedule that names a time zone, with upstream's path.
const ZONE_IN_SCHEDULE: &str = "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details";

impl StoredKind for CronJob {
    const WAITS_HAVE_NEXT_RECONCILE: bool = true;
    const ROLE: Role = Role::Workload;

    status::status_items!();

    fn fill_defaults(&mut self) {
        let spec = &mut self.spec;
        set_default(&mut spec.concurrency_policy, "Allow");
        spec.suspend.get_or_insert(false);
        spec.successful_jobs_history_limit.get_or_insert(3);
        spec.failed_jobs_history_limit.get_or_insert(1);
        job::fill_defaults(&mut spec.job_template.spec);
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let (path, spec) = (FieldPath::root("spec"), &self.spec);
        validate_schedule(&spec.schedule, &path.field("schedule"), errors);
        for (field, number) in [
            ("startingDeadlineSeconds", spec.starting_deadline_seconds),
            (
                "successfulJobsHistoryLimit",
                spec.successful_jobs_history_limit.map(i64::from),
            ),
            (
                "failedJobsHistoryLimit",
                spec.failed_jobs_history_limit.map(i64::from),
            ),
        ] {
            errors.non_negative(&path.field(field), number.unwrap_or_default());
        }
        let policy = spec.concurrency_policy.as_str();
        errors.one_of(&path.field("concurrencyPolicy"), policy, POLICIES);
        validate_job(spec, &path.field("jobTemplate").field("spec"), errors);
    }

    fn validate_create(&self, errors: &mut FieldErrors) {
        validate_schedule_zone(&self.spec, None, errors);
        validate_zone(self.spec.time_zone.as_deref(), errors);
        let name = &self.metadata.name;
        if name.len() > MAX_NAME {
            let detail = format!("must be no more than {MAX_NAME} characters");
            errors.invalid(&FieldPath::root("metadata").field("name"), name, detail);
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        validate_schedule_zone(&self.spec, Some(&old.spec.schedule), errors);
        if self.spec.time_zone != old.spec.time_zone {
            validate_zone(self.spec.time_zone.as_deref(), errors);
        }
    }

    fn warn(&self, old: Option<&Self>, warnings: &mut Warnings) {
        if old.is_none() {
            warn_of_pod_names(&self.metadata.name, warnings);
        }
        if template::is_new_intent(self, old) {
            let path = FieldPath::root("spec");
            let path = path.field("jobTemplate");
            let spec = &self.spec.job_template.spec;
            job::warn_of_spec(spec, &path.field("spec"), warnings);
        }
        if has_zone(&self.spec.schedule) {
            warnings.add(ZONE_IN_SCHEDULE);
        }
    }

    fn cell(&self, column: &str, now: Timestamp) -> Option<Value> {
        let (spec, status) = (&self.spec, &self.status);
        Some(match column {
            "Timezone" => spec.time_zone.as_deref().unwrap_or("<none>").into(),
            "Suspend" => match spec.suspend {
                None => "<unset>".into(),
                Some(true) => "True".into(),
                Some(false) => "False".into(),
            },
            "Active" => status.active.len().into(),
            "Last Schedule" => match &status.last_schedule_time {
                None => "<none>".into(),
                time => age::since_time(time.as_ref(), now).into(),
            },
            _ => {
                let job = &spec.job_template.spec;
                return template::cell(column, &job.template, job.selector.as_ref());
            }
        })
    }

    fn waits(&self, records: &Records<'_>) -> Vec<Wait> {
        waits::waits(self, records.now_ns)
    }
}

fn validate_schedule(schedule: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if schedule.is_empty() {
        errors.required(path, "");
        return;
    }
    if let Err(error) = Timetable::parse(schedule, &TimeZone::UTC) {
        errors.invalid(path, schedule, error);
    }
}

/// Returns whether a schedule names the time zone that it is of. That is an error of a new schedule.
fn has_zone(schedule: &str) -> bool {
    schedule.contains("TZ")
}

/// Validates that only the field names the time zone, unless `old` is a schedule that names it, too.
fn validate_schedule_zone(spec: &CronJobSpec, old: Option<&str>, errors: &mut FieldErrors) {
    if !has_zone(&spec.schedule) {
        return;
    }
    let detail = match old.is_some_and(has_zone) {
        false => "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        true if spec.time_zone.is_some() => {
            "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        }
        true => return,
    };
    let path = FieldPath::root("spec");
    errors.invalid(&path.field("schedule"), &spec.schedule, detail);
}

fn validate_zone(zone: Option<&str>, errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    let path = path.field("timeZone");
    match zone {
        None => {}
        Some("") => errors.invalid(&path, "", "timeZone must be nil or non-empty string"),
        Some(zone) => {
            let is_valid = zone.split('/').all(is_zone_part);
            if is_valid && zone.eq_ignore_ascii_case("local") {
                let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
                errors.invalid(&path, zone, detail);
            }
            if !is_valid || cron::zone(zone, &TimeZone::UTC).is_none() {
                errors.invalid(&path, zone, format!("unknown time zone {zone}"));
            }
        }
    }
}

fn is_zone_part(part: &str) -> bool {
    let valid = |letter: char| letter.is_ascii_alphanumeric() || ".-_+".contains(letter);
    (1..=MAX_ZONE_PART).contains(&part.len())
        && part.chars().all(valid)
        && ![".", ".."].contains(&part)
        && !part.starts_with('-')
}

fn validate_job(spec: &CronJobSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let job = &spec.job_template.spec;
    job::validate_spec(job, path, errors);
    if job.selector.is_some() {
        let detail = "`selector` will be auto-generated";
        errors.invalid(&path.field("selector"), &job.selector, detail);
    }
    if job.manual_selector == Some(true) {
        let at = path.field("manualSelector");
        errors.unsupported(&at, "true", &["nil", "false"]);
    }
}
