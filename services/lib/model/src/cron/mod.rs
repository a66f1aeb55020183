//! Schedules of CronJobs, in the syntax and with the errors of the Go library `robfig/cron`: five fields, or a
//! descriptor such as `@hourly` or `@every 1h30m`.
//!
//! 2026-11: we chose 650 lines of our own over the crates `cron` and `croner`, because a schedule that upstream accepts
//! must be accepted, one that it refuses must be refused in its words, and these crates have other fields (seconds,
//! years, `L`, `#`) and other rules for days. Wrong if one of them gets robfig's grammar.

mod times;
mod timetable;

use std::time::Duration;

pub use timetable::{Timetable, zone};

/// A schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// At the times that all fields match.
    Fields(Fields),
    /// Again after each interval, of at least one second.
    Every(Duration),
}

/// The values that a time must have: bit `n` of a field stands for the value `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// 0 to 59.
    pub minutes: u64,
    /// 0 to 23.
    pub hours: u64,
    /// 1 to 31.
    pub days: u64,
    /// 1 to 12.
    pub months: u64,
    /// 0 (Sunday) to 6. If neither this nor `days` is restricted by [`ANY`], one of the two must match.
    pub weekdays: u64,
}

/// The bit of `days` and `weekdays` for a field that contains `*` or `?`.
pub const ANY: u64 = 1 << 63;

/// The error of a schedule that is malformed; the message is that of the Go library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// The bounds of a field, and the names of its values from the lowest.
struct Bounds {
    min: u64,
    max: u64,
    names: &'static [&'static str],
}

const fn bounds(min: u64, max: u64, names: &'static [&'static str]) -> Bounds {
    Bounds { min, max, names }
}

const MINUTES: Bounds = bounds(0, 59, &[]);
const HOURS: Bounds = bounds(0, 23, &[]);
const DAYS: Bounds = bounds(1, 31, &[]);
const MONTHS: Bounds = bounds(
    1,
    12,
    &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
);
const WEEKDAYS: Bounds = bounds(0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]);

impl Schedule {
    /// Parses a schedule without a time zone.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn parse(text: &str) -> Result<Self, Error> {
        match text {
            "" => Err(Error("empty spec string".into())),
            "@yearly" | "@annually" => Self::fields("0 0 1 1 *"),
            "@monthly" => Self::fields("0 0 1 * *"),
            "@weekly" => Self::fields("0 0 * * 0"),
            "@daily" | "@midnight" => Self::fields("0 0 * * *"),
            "@hourly" => Self::fields("0 * * * *"),
            descriptor if descriptor.starts_with('@') => Self::every(descriptor),
            fields => Self::fields(fields),
        }
    }

    fn every(descriptor: &str) -> Result<Self, Error> {
        let Some(duration) = descriptor.strip_prefix("@every ") else {
            return Err(Error(format!("unrecognized descriptor: {descriptor}")));
        };
        let duration = seconds(duration).map_err(|error| {
            Error(format!(
                "failed to parse duration {descriptor}: time: {error}"
            ))
        })?;
        Ok(Self::Every(Duration::from_secs(duration.max(1))))
    }

    fn fields(text: &str) -> Result<Self, Error> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            let count = fields.len();
            let fields = fields.join(" ");
            return Err(Error(format!(
                "expected exactly 5 fields, found {count}: [{fields}]"
            )));
        };
        Ok(Self::Fields(Fields {
            minutes: field(minutes, &MINUTES)?,
            hours: field(hours, &HOURS)?,
            days: field(days, &DAYS)?,
            months: field(months, &MONTHS)?,
            weekdays: field(weekdays, &WEEKDAYS)?,
        }))
    }
}

/// Parses a list of ranges.
fn field(text: &str, bounds: &Bounds) -> Result<u64, Error> {
    let ranges = text.split(',').filter(|range| !range.is_empty());
    ranges
        .map(|text| range(text, bounds))
        .try_fold(0, |bits, range| Ok(bits | range?))
}

/// Parses `*`, a number, or `number-number`, each with an optional `/step`.
fn range(text: &str, bounds: &Bounds) -> Result<u64, Error> {
    let mut parts = text.split('/');
    let limits: Vec<&str> = parts.next().unwrap_or_default().split('-').collect();
    let any = ["*", "?"].contains(&limits[0]);
    let (start, mut end) = match limits[..] {
        _ if any => (bounds.min, bounds.max),
        [one] => (value(one, bounds)?, value(one, bounds)?),
        [first, last] => (value(first, bounds)?, value(last, bounds)?),
        _ => return Err(Error(format!("too many hyphens: {text}"))),
    };
    let step = parts.next().map(number).transpose()?;
    if parts.next().is_some() {
        return Err(Error(format!("too many slashes: {text}")));
    }
    if step.is_some() && limits.len() == 1 {
        end = bounds.max;
    }
    let step = step.unwrap_or(1);
    check_range(start, end, step, bounds).map_err(|why| Error(format!("{why}: {text}")))?;
    let stride = usize::try_from(step).unwrap_or(usize::MAX);
    let values = (start..=end).step_by(stride);
    let any = if any && step == 1 { ANY } else { 0 };
    Ok(values.fold(any, |bits, value| bits | 1 << value))
}

fn check_range(start: u64, end: u64, step: u64, bounds: &Bounds) -> Result<(), String> {
    let (min, max) = (bounds.min, bounds.max);
    if start < min {
        return Err(format!(
            "beginning of range ({start}) below minimum ({min})"
        ));
    }
    if end > max {
        return Err(format!("end of range ({end}) above maximum ({max})"));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end})"
        ));
    }
    match step {
        0 => Err("step of range should be a positive number".into()),
        _ => Ok(()),
    }
}

fn value(text: &str, bounds: &Bounds) -> Result<u64, Error> {
    let mut names = bounds.names.iter().zip(bounds.min..);
    match names.find(|(name, _)| name.eq_ignore_ascii_case(text)) {
        Some((_, number)) => Ok(number),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, Error> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(Error(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"
        )));
    }
    let number = digits.parse::<i64>().ok();
    number.and_then(|number| u64::try_from(number).ok()).ok_or_else(|| {
        Error(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: value out of range"
        ))
    })
}

/// Parses a duration in Go's syntax, such as `1h30m` or `1.5h`, and returns its whole seconds; 0 if it is negative.
fn seconds(text: &str) -> Result<u64, String> {
    let invalid = || format!("invalid duration {text:?}");
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut nanos = 0_f64;
    while !rest.is_empty() {
        let (amount, after) = split(rest, |letter| letter == '.' || letter.is_ascii_digit());
        let amount: f64 = amount.parse().map_err(|_| invalid())?;
        let (unit, after) = split(after, |letter| letter != '.' && !letter.is_ascii_digit());
        let scale = match unit {
            "" => return Err(format!("missing unit in duration {text:?}")),
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            other => return Err(format!("unknown unit {other:?} in duration {text:?}")),
        };
        nanos += amount * scale;
        rest = after;
    }
    // 2^63 nanoseconds are about 292 years.
    if nanos >= 9_223_372_036_854_775_808.0 {
        return Err(invalid());
    }
    let seconds = Duration::try_from_secs_f64(nanos / 1e9).map_err(|_| invalid())?;
    Ok(if negative { 0 } else { seconds.as_secs() })
}

/// Splits the text before the first letter that does not belong to its start.
fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|letter| !belongs(letter));
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Fields {
        match Schedule::parse(text) {
            Ok(Schedule::Fields(fields)) => fields,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn ranges_steps_and_names_set_the_bits_of_their_values() {
        assert_eq!(
            parsed("5/15 * * * *").minutes,
            1 << 5 | 1 << 20 | 1 << 35 | 1 << 50
        );
        assert_eq!(
            parsed("1-5/2,50 * * * *").minutes,
            1 << 1 | 1 << 3 | 1 << 5 | 1 << 50
        );
        assert_eq!(parsed("* * * JAN,Dec *").months, 1 << 1 | 1 << 12);
        assert_eq!(parsed("* * * * mon-fri").weekdays, 0b11_1110);
        assert_eq!(parsed("* * ? * *").days & ANY, ANY);
        assert_eq!(parsed("* * */2 * *").days & ANY, 0);
        assert_eq!(parsed("@weekly").weekdays, 1);
        assert_eq!(parsed(" 0  0 * *\t* "), parsed("@midnight"));
    }

    #[test]
    fn intervals_are_whole_seconds() {
        let every = |seconds| Ok(Schedule::Every(Duration::from_secs(seconds)));
        assert_eq!(Schedule::parse("@every 1h30m"), every(5400));
        assert_eq!(Schedule::parse("@every 1.5m"), every(90));
        assert_eq!(Schedule::parse("@every 10ms"), every(1));
        assert_eq!(Schedule::parse("@every -5s"), every(1));
    }

    #[test]
    fn errors_have_the_texts_of_the_library() {
        for (text, error) in [
            ("", "empty spec string"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-2 * * * *",
                "beginning of range (5) beyond end of range (2): 5-2",
            ),
            ("* * * * 7", "end of range (7) above maximum (6): 7"),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            (
                "error * * * *",
                "failed to parse int from error: strconv.Atoi: parsing \"error\": invalid syntax",
            ),
            ("@never", "unrecognized descriptor: @never"),
            (
                "@every x",
                "failed to parse duration @every x: time: invalid duration \"x\"",
            ),
            (
                "@every 5",
                "failed to parse duration @every 5: time: missing unit in duration \"5\"",
            ),
            (
                "@every 5d",
                "failed to parse duration @every 5d: time: unknown unit \"d\" in duration \"5d\"",
            ),
        ] {
            assert_eq!(Schedule::parse(text).unwrap_err().to_string(), error);
        }
        let large = format!("{} * * * *", u64::MAX);
        assert!(Schedule::parse(&large).is_err());
        assert!(Schedule::parse("*/9223372036854775807 * * * *").is_ok());
    }
}
