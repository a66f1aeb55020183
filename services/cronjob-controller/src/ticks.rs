//! The scheduled times of a CronJob: the one that a Job is due for, and the next.
//!
//! The last time before now is estimated as upstream does it: from the interval between the first two times that have
//! passed. It finds no time if the schedule is irregular and now is far from a time, as in `30 10-12 * * 1-5` on a
//! Saturday.
#![warn(clippy::arithmetic_side_effects)]

use jiff::Timestamp;
use setpoint_model::cron::{Timetable, zone};
use setpoint_model::time::seconds_after;

use crate::{Note, World};

/// The number of times without a Job that is reported: more than a weekend of hours.
const MANY: i64 = 100;

/// The scheduled times of a CronJob at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ticks {
    /// The time that has come and has no Job.
    pub due: Option<Timestamp>,
    /// The time that has come and had no Job when its deadline passed. An Event reports it; upstream's condition for
    /// that Event never holds, since it looks only for times within the deadline.
    pub late: Option<Timestamp>,
    /// The first time after now.
    pub next: Option<Timestamp>,
    /// Whether so many times have passed that the clock or the deadline may be wrong.
    pub too_many: bool,
}

/// The times that have passed since a Job was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// The last of them.
    pub last: Option<Timestamp>,
    /// About how many there are; not counted if there is only one.
    pub count: i64,
}

/// A schedule that has no times, such as `0 0 30 2 *`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Never;

impl Ticks {
    /// Returns the times of a CronJob; none if it is suspended.
    ///
    /// # Errors
    /// The Event that says why there are no times.
    pub fn of(world: &World) -> Result<Self, Note> {
        let cronjob = &world.cronjob;
        let mut zone = world.local.clone();
        if let Some(name) = &cronjob.time_zone {
            zone = self::zone(name, &world.local).ok_or_else(|| Note::unknown_zone(name))?;
        }
        if cronjob.suspended {
            return Ok(Self::default());
        }
        // A zone in the schedule is that of upstream's library.
        let zone = match cronjob.schedule.contains("TZ") {
            true => &world.local,
            false => &zone,
        };
        let timetable = Timetable::parse(&cronjob.schedule, zone);
        let timetable =
            timetable.map_err(|error| Note::unparseable_schedule(&cronjob.schedule, &error))?;
        let ticks = Self::within(world, &timetable);
        ticks.map_err(|Never| Note::invalid_schedule(&cronjob.schedule))
    }

    fn within(world: &World, timetable: &Timetable) -> Result<Self, Never> {
        let (cronjob, now) = (&world.cronjob, world.now);
        let start = world.last_scheduled().or(cronjob.meta.created);
        let mut start = start.unwrap_or(now);
        if let Some(changed) = world.changed {
            start = start.max(timetable.schedule.align(start, changed));
        }
        let missed = Missed::between(timetable, start, now)?;
        let in_time = match cronjob.starting_deadline_seconds {
            None => missed,
            Some(seconds) => {
                let earliest = seconds_after(now, seconds.max(0).saturating_neg());
                let earliest = timetable.schedule.align(start, earliest);
                Missed::between(timetable, start.max(earliest), now)?
            }
        };
        // Counted from the last time, for the sake of intervals.
        let reached = match missed {
            Missed {
                last: Some(last), ..
            } => last,
            Missed { count: 0, .. } => start,
            Missed { .. } => now,
        };
        Ok(Self {
            due: in_time.last,
            late: missed.last.filter(|_| in_time.last.is_none()),
            next: timetable.next(reached),
            too_many: in_time.count > MANY,
        })
    }
}

impl Missed {
    /// Returns the times after `start` until `now`.
    ///
    /// # Errors
    /// If there is no time after `start`.
    pub fn between(timetable: &Timetable, start: Timestamp, now: Timestamp) -> Result<Self, Never> {
        let first = timetable.next(start).ok_or(Never)?;
        if now < first {
            return Ok(Self::default());
        }
        let Some(second) = timetable.next(first).filter(|second| *second <= now) else {
            return Ok(Self {
                last: Some(first),
                count: 0,
            });
        };
        let interval = seconds_between(first, second).max(1);
        let passed = seconds_between(first, now).checked_div(interval);
        let passed = passed.unwrap_or_default();
        let before = passed.saturating_sub(1).saturating_mul(interval);
        Ok(Self {
            last: timetable.last(seconds_after(first, before), now),
            count: passed.saturating_add(1),
        })
    }
}

fn seconds_between(start: Timestamp, end: Timestamp) -> i64 {
    end.as_second().saturating_sub(start.as_second())
}
