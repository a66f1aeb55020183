//! The times of a schedule.
//!
//! A time of five fields is the start of a minute whose local time they match: a local time that a change of the clocks
//! skips is none, and one that occurs twice is two.
#![warn(clippy::arithmetic_side_effects)]

use std::time::Duration;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{ANY, Fields, Schedule};

const MINUTE: i64 = 60;
const MINUTES: i64 = 60;
/// The number of years that are searched, as in the Go library: `0 0 30 2 *` has no time.
const YEARS: i16 = 5;
/// The values of a field, without [`ANY`].
const VALUES: u64 = (1 << 60) - 1;

impl Schedule {
    /// Returns the first time after `after`; `None` if there is none within five years.
    pub fn next(&self, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(interval) => seconds(after.as_second()).ok()?.checked_add(*interval).ok(),
            Self::Fields(fields) => fields.next(zone, after),
        }
    }

    /// Returns the last time after `after` and not after `until`. An interval begins at `after`.
    pub fn last(&self, zone: &TimeZone, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(interval) => {
                let last = last_interval(*interval, after, until);
                (last > after).then_some(last)
            }
            Self::Fields(fields) => fields.last(zone, after, until),
        }
    }

    /// Returns the time after which [`Self::next`] gives the first time after `floor`: of intervals the last that
    /// begins not after it, counted from `start`.
    pub fn align(&self, start: Timestamp, floor: Timestamp) -> Timestamp {
        match self {
            Self::Every(interval) => last_interval(*interval, start, floor),
            Self::Fields(_) => floor,
        }
    }
}

/// Returns the last of the times `start`, `start + interval`, … that is not after `until`, in whole seconds.
fn last_interval(interval: Duration, start: Timestamp, until: Timestamp) -> Timestamp {
    let interval = i64::try_from(interval.as_secs()).unwrap_or(i64::MAX).max(1);
    let passed = until.as_second().saturating_sub(start.as_second());
    let rest = passed.checked_rem(interval).unwrap_or_default();
    seconds(until.as_second().saturating_sub(rest)).map_or(start, |last| last.max(start))
}

impl Fields {
    fn next(&self, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
        let mut time = shift(minute(zone, after)?, MINUTE)?;
        let last_year = zone.to_datetime(time).year().saturating_add(YEARS);
        loop {
            let local = zone.to_datetime(time);
            if local.year() > last_year {
                return None;
            }
            time = match self.minutes_until(local) {
                _ if !self.has_day(local.date()) => {
                    let tomorrow = start(zone, local.date().tomorrow().ok()?)?;
                    tomorrow.max(shift(time, MINUTE)?)
                }
                0 => return Some(time),
                minutes => shift(time, minutes.saturating_mul(MINUTE))?,
            };
        }
    }

    fn last(&self, zone: &TimeZone, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let mut time = minute(zone, until)?;
        while time > after {
            let local = zone.to_datetime(time);
            time = match self.minutes_since(local) {
                _ if !self.has_day(local.date()) => {
                    shift(start(zone, local.date())?.min(time), -MINUTE)?
                }
                0 => return Some(time),
                minutes => shift(time, minutes.saturating_mul(-MINUTE))?,
            };
        }
        None
    }

    fn has_day(&self, date: Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        let matches = match (self.days | self.weekdays) & ANY {
            0 => day || weekday,
            _ => day && weekday,
        };
        matches && has(self.months, date.month())
    }

    /// Returns the minutes until the next time of this hour, or until the next hour.
    fn minutes_until(&self, local: DateTime) -> i64 {
        let minute = i64::from(local.minute());
        let later = self.minutes & VALUES & u64::MAX.unbounded_shl(minute.unsigned_abs() as u32);
        match has(self.hours, local.hour()) && later != 0 {
            true => i64::from(later.trailing_zeros()).saturating_sub(minute),
            false => MINUTES.saturating_sub(minute),
        }
    }

    /// Returns the minutes since the last time of this hour, or since the last minute of the hour before.
    fn minutes_since(&self, local: DateTime) -> i64 {
        let minute = i64::from(local.minute());
        let after = u64::MAX.unbounded_shl(minute.unsigned_abs().saturating_add(1) as u32);
        let earlier = self.minutes & VALUES & !after;
        match (has(self.hours, local.hour()), earlier.checked_ilog2()) {
            (true, Some(last)) => minute.saturating_sub(i64::from(last)),
            _ => minute.saturating_add(1),
        }
    }
}

fn has(values: u64, value: i8) -> bool {
    values & 1_u64.unbounded_shl(u32::from(value.unsigned_abs())) != 0
}

/// Returns the start of the minute of a time.
fn minute(zone: &TimeZone, time: Timestamp) -> Option<Timestamp> {
    let second = i64::from(zone.to_datetime(time).second());
    seconds(time.as_second().saturating_sub(second)).ok()
}

/// Returns the start of a day: midnight, or the first time after it if the clocks skip that.
fn start(zone: &TimeZone, date: Date) -> Option<Timestamp> {
    let midnight = zone.to_ambiguous_timestamp(date.at(0, 0, 0, 0));
    midnight.compatible().ok()
}

fn shift(time: Timestamp, seconds: i64) -> Option<Timestamp> {
    time.checked_add(SignedDuration::from_secs(seconds)).ok()
}

fn seconds(seconds: i64) -> Result<Timestamp, jiff::Error> {
    Timestamp::from_second(seconds)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::zone;
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn times(schedule: &str, zone_name: &str, after: &str, count: usize) -> Vec<String> {
        let schedule = Schedule::parse(schedule).unwrap();
        let zone = zone(zone_name, &TimeZone::UTC).unwrap();
        let first = schedule.next(&zone, at(after));
        let times = std::iter::successors(first, |time| schedule.next(&zone, *time));
        let text = |time: Timestamp| {
            time.to_zoned(zone.clone())
                .strftime("%F %H:%M %:z")
                .to_string()
        };
        times.take(count).map(text).collect()
    }

    #[test]
    fn fields_match_the_local_time() {
        let monday = "2026-01-05T00:00:00Z";
        let expected = ["2026-01-05 06:30 +00:00", "2026-01-05 10:30 +00:00"];
        assert_eq!(times("30 6-16/4 * * 1-5", "UTC", monday, 2), expected);
        let expected = ["2026-01-05 08:00 +09:00", "2026-01-06 08:00 +09:00"];
        assert_eq!(
            times("0 8 * * *", "Asia/Tokyo", "2026-01-04T20:00:00Z", 2),
            expected
        );
    }

    #[test]
    fn a_time_is_later_than_the_one_it_is_asked_for() {
        let expected = ["2026-01-05 00:01 +00:00"];
        assert_eq!(
            times("* * * * *", "UTC", "2026-01-05T00:00:00Z", 1),
            expected
        );
        assert_eq!(
            times("* * * * *", "UTC", "2026-01-05T00:00:59.9Z", 1),
            expected
        );
    }

    #[test]
    fn a_day_must_match_both_fields_unless_both_are_restricted() {
        let after = "2026-01-01T12:00:00Z";
        let either = [
            "2026-01-02 00:00 +00:00",
            "2026-01-09 00:00 +00:00",
            "2026-01-13 00:00 +00:00",
        ];
        assert_eq!(times("0 0 13 * FRI", "UTC", after, 3), either);
        let both = ["2026-01-13 00:00 +00:00", "2026-02-13 00:00 +00:00"];
        assert_eq!(times("0 0 13 * ?", "UTC", after, 2), both);
    }

    /// Checks J3: Berlin skips 02:00 to 03:00 on March 29, and repeats it on October 25.
    #[test]
    fn a_skipped_local_time_is_no_time_and_a_repeated_one_is_two() {
        let expected = ["2026-03-28 02:30 +01:00", "2026-03-30 02:30 +02:00"];
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 2),
            expected
        );
        let expected = [
            "2026-10-25 02:30 +02:00",
            "2026-10-25 02:30 +01:00",
            "2026-10-26 02:30 +01:00",
        ];
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 3),
            expected
        );
    }

    /// Checks J3: Beirut skips the hour after midnight on March 29.
    #[test]
    fn a_day_without_midnight_has_its_other_times() {
        let expected = ["2026-03-29 08:00 +03:00", "2026-04-05 08:00 +03:00"];
        assert_eq!(
            times("0 8 * * SUN", "Asia/Beirut", "2026-03-28T12:00:00Z", 2),
            expected
        );
        let expected = ["2026-03-28 00:00 +02:00", "2026-03-30 00:00 +03:00"];
        assert_eq!(
            times("0 0 * * *", "Asia/Beirut", "2026-03-27T12:00:00Z", 2),
            expected
        );
    }

    #[test]
    fn a_schedule_without_times_ends_the_search() {
        for never in [
            "0 0 30 2 *",
            "59 23 31 2,4,6,9,11 *",
            ", * * * *",
            "* * , * ,",
        ] {
            let schedule = Schedule::parse(never).unwrap();
            assert_eq!(
                schedule.next(&TimeZone::UTC, Timestamp::UNIX_EPOCH),
                None,
                "{never}"
            );
            let (from, until) = (at("2020-01-01T00:00:00Z"), at("2030-01-01T00:00:00Z"));
            assert_eq!(schedule.last(&TimeZone::UTC, from, until), None, "{never}");
        }
        let leap = ["2028-02-29 00:00 +00:00", "2032-02-29 00:00 +00:00"];
        assert_eq!(times("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", 2), leap);
        assert!(times("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1).is_empty());
        assert!(times("* * * * *", "UTC", "9999-12-30T21:59:59Z", 1).len() <= 1);
    }

    #[test]
    fn intervals_are_counted_from_a_start_in_whole_seconds() {
        let every = Schedule::parse("@every 90s").unwrap();
        let (start, utc) = (at("2026-01-01T00:00:10.5Z"), TimeZone::UTC);
        assert_eq!(every.next(&utc, start), Some(at("2026-01-01T00:01:40Z")));
        let last = |until| every.last(&utc, start, at(until));
        assert_eq!(last("2026-01-01T00:01:39Z"), None);
        assert_eq!(
            last("2026-01-01T00:04:39Z"),
            Some(at("2026-01-01T00:03:10Z"))
        );
        let floor = at("2026-01-01T00:04:39Z");
        assert_eq!(every.align(start, floor), at("2026-01-01T00:03:10Z"));
        assert_eq!(every.align(floor, start), floor);
    }

    fn zones() -> impl Strategy<Value = TimeZone> {
        let names = [
            "UTC",
            "Europe/Berlin",
            "Australia/Lord_Howe",
            "Asia/Beirut",
            "America/Santiago",
        ];
        prop::sample::select(names.to_vec()).prop_map(|name| zone(name, &TimeZone::UTC).unwrap())
    }

    fn schedules() -> impl Strategy<Value = Schedule> {
        let bits = |max: u32| {
            let all = u64::MAX.unbounded_shr(u64::BITS.saturating_sub(max));
            prop_oneof![Just(all), 1..=all]
        };
        let days = prop_oneof![Just(ANY | 0xffff_fffe), 1..(1_u64 << 32)];
        let weekdays = prop_oneof![Just(ANY | 0x7f), 1..0x80_u64];
        let fields =
            (bits(60), bits(24), days, weekdays).prop_map(|(minutes, hours, days, weekdays)| {
                Fields {
                    minutes,
                    hours,
                    days,
                    months: 0x1ffe,
                    weekdays,
                }
            });
        fields.prop_map(Schedule::Fields)
    }

    proptest! {
        #[test]
        fn next_and_last_give_all_minutes_whose_local_time_matches(
            zone in zones(), schedule in schedules(), day in 0..730_i64, second in 0..86_400_i64,
        ) {
            let from = shift(at("2025-01-01T00:00:00Z"), day.saturating_mul(86_400)).unwrap();
            let from = shift(from, second).unwrap();
            let until = shift(from, 3 * 86_400).unwrap();
            let Schedule::Fields(fields) = schedule else { unreachable!() };
            let matches = |time: &Timestamp| {
                let local = zone.to_datetime(*time);
                let hour = has(fields.hours, local.hour()) && has(fields.minutes, local.minute());
                hour && fields.has_day(local.date())
            };
            let first = shift(minute(&zone, from).unwrap(), MINUTE).unwrap();
            let all = std::iter::successors(Some(first), |time| shift(*time, MINUTE));
            let all: Vec<_> = all.take_while(|time| *time <= until).filter(matches).collect();
            let next = std::iter::successors(schedule.next(&zone, from), |time| schedule.next(&zone, *time));
            let next: Vec<_> = next.take_while(|time| *time <= until).collect();
            prop_assert_eq!(&next, &all);
            prop_assert_eq!(schedule.last(&zone, from, until), all.last().copied());
        }
    }
}
