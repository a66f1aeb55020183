//! The state of a CronJob: what keeps it from creating a Job, and the next scheduled time. Pure.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use setpoint_model::Key;
use setpoint_model::cron::{Timetable, zone};
use setpoint_proto::batch::{CronJob, Job};
use setpoint_proto::setpoint::Wait;
use setpoint_proto::{Resource as _, meta};

use crate::waits::wait;

/// Returns what a CronJob waits for; nothing if it is being deleted.
pub(super) fn waits(cronjob: &CronJob, now_ns: i64) -> Vec<Wait> {
    if cronjob.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    if cronjob.spec.suspend == Some(true) {
        let message = "it is suspended: no Job is created";
        return vec![wait("Suspended", message)];
    }
    let next = match timetable(cronjob) {
        Ok(timetable) => next(cronjob, &timetable, now_ns),
        Err((reason, message)) => return vec![wait(reason, message)],
    };
    let forbids = cronjob.spec.concurrency_policy == "Forbid";
    let active = cronjob.status.active.iter().filter(|_| forbids);
    let mut waits: Vec<_> = active
        .map(|job| Wait {
            on: Some(Key::new(&*job.namespace, &*job.name).in_resource(Job::RESOURCE)),
            ..wait(
                "JobAlreadyActive",
                "it runs, and the concurrency policy is Forbid",
            )
        })
        .collect();
    waits.push(next);
    waits
}

/// Returns the timetable. Without a time zone it is in that of the process, which the controller is assumed to have as
/// well.
fn timetable(cronjob: &CronJob) -> Result<Timetable, (&'static str, String)> {
    let local = TimeZone::system();
    let zone = match &cronjob.spec.time_zone {
        None => local,
        Some(name) => {
            let unknown = || ("UnknownTimeZone", format!("unknown time zone {name}"));
            zone(name, &local).ok_or_else(unknown)?
        }
    };
    let timetable = Timetable::parse(&cronjob.spec.schedule, &zone);
    timetable.map_err(|error| ("UnparseableSchedule", error.to_string()))
}

fn next(cronjob: &CronJob, timetable: &Timetable, now_ns: i64) -> Wait {
    let now = Timestamp::from_nanosecond(now_ns.into()).unwrap_or(Timestamp::MAX);
    let last = cronjob.status.last_schedule_time.as_ref();
    let last = last.and_then(meta::Time::timestamp);
    let created = cronjob.metadata.creation_timestamp.timestamp();
    let start = last.or(created).unwrap_or(now);
    let next = timetable.next(timetable.schedule.align(start, now));
    match next.and_then(|next| i64::try_from(next.as_nanosecond()).ok()) {
        Some(until_ns) => Wait {
            until_ns,
            ..wait("NextSchedule", "the next scheduled time")
        },
        None => wait("InvalidSchedule", "the schedule has no times"),
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::ObjectReference;

    use super::*;

    const NOW: i64 = 1_767_571_200_000_000_000; // 2026-01-05T00:00:00Z
    const HOUR: i64 = 3_600_000_000_000;

    fn cronjob(schedule: &str, zone: &str) -> CronJob {
        let mut cronjob = CronJob::default();
        cronjob.spec.schedule = schedule.into();
        cronjob.spec.time_zone = Some(zone.into());
        cronjob
    }

    fn reasons(cronjob: &CronJob) -> Vec<(String, i64)> {
        let waits = waits(cronjob, NOW).into_iter();
        waits.map(|wait| (wait.reason, wait.until_ns)).collect()
    }

    /// Checks J3.
    #[test]
    fn a_cronjob_waits_for_its_next_time_in_its_zone() {
        let next = |schedule, zone| reasons(&cronjob(schedule, zone));
        let at = |hours: i64| [("NextSchedule".to_owned(), NOW + hours * HOUR)];
        assert_eq!(next("0 8 * * *", "UTC"), at(8));
        assert_eq!(next("0 8 * * *", "Europe/Berlin"), at(7));
        assert_eq!(next("@every 5h", "UTC"), at(5));
        assert_eq!(next("0 0 30 2 *", "UTC")[0].0, "InvalidSchedule");
        assert_eq!(next("0 0 30 2", "UTC")[0].0, "UnparseableSchedule");
        assert_eq!(next("0 8 * * *", "Mars")[0].0, "UnknownTimeZone");
    }

    /// Checks J3.
    #[test]
    fn a_suspended_cronjob_waits_for_the_user_and_a_forbidding_one_for_its_job() {
        let mut cronjob = cronjob("0 8 * * *", "UTC");
        cronjob.status.active.push(ObjectReference {
            namespace: "production".into(),
            name: "report-1".into(),
            ..Default::default()
        });
        assert_eq!(reasons(&cronjob).len(), 1);
        cronjob.spec.concurrency_policy = "Forbid".into();
        let waits = waits(&cronjob, NOW);
        assert_eq!(waits[0].reason, "JobAlreadyActive");
        assert_eq!(waits[0].on.as_ref().unwrap().name, "report-1");
        cronjob.spec.suspend = Some(true);
        assert_eq!(reasons(&cronjob), [("Suspended".to_owned(), 0)]);
    }
}
