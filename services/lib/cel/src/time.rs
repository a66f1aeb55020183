//! Instants and durations in the notations of expressions.

use std::sync::LazyLock;

use jiff::civil::Date;
use jiff::{Timestamp, tz::TimeZone};
use regex::Regex;

/// The first and last second that a timestamp may have: the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

static SCALA: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^\s*([0-9]+)\s*(milli|micro|nano|sec|min|hour|day|week|hr|wk|d|w)[a-z]*\s*$")
        .ok()
});

/// Reads an instant of RFC 3339.
pub(super) fn timestamp(text: &str) -> Option<Timestamp> {
    in_range(text.parse().ok()?)
}

pub(super) fn in_range(found: Timestamp) -> Option<Timestamp> {
    SECONDS.contains(&found.as_second()).then_some(found)
}

/// Reads a date; it is its first second.
pub(super) fn date(text: &str) -> Option<Timestamp> {
    let date: Date = text.parse().ok()?;
    let start = date.to_zoned(TimeZone::UTC).ok()?;
    in_range(start.timestamp())
}

/// Reads a duration of a schema: Go's notation, or a number and a unit.
pub(super) fn duration(text: &str) -> Option<i64> {
    go_duration(text).or_else(|| {
        let found = SCALA.as_ref()?.captures(text)?;
        let count: i64 = found[1].parse().ok()?;
        let seconds = |seconds: i64| seconds.checked_mul(NANOS_PER_SECOND);
        let unit = match found[2].to_lowercase().as_str() {
            "nano" => 1,
            "micro" => 1_000,
            "milli" => 1_000_000,
            "sec" => NANOS_PER_SECOND,
            "min" => seconds(60)?,
            "hour" | "hr" => seconds(3_600)?,
            "day" | "d" => seconds(86_400)?,
            _ => seconds(604_800)?,
        };
        count.checked_mul(unit)
    })
}

/// Reads a duration in Go's notation, in nanoseconds: `1h30m`, `-1.5s`.
pub fn go_duration(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum: i128 = 0;
    while !rest.is_empty() {
        let (nanos, tail) = part(rest)?;
        sum = sum.checked_add(nanos)?;
        rest = tail;
    }
    i64::try_from(sum.checked_mul(sign)?).ok()
}

/// Reads a number and its unit. Returns the nanoseconds, and the rest.
fn part(text: &str) -> Option<(i128, &str)> {
    const UNITS: [(&str, i128); 8] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let end = text.find(|letter| !is_number(letter))?;
    let (number, rest) = text.split_at(end);
    let end = rest.find(is_number).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let (_, unit) = UNITS.iter().find(|(known, _)| *known == name)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let count: i128 = if whole.is_empty() {
        0
    } else {
        whole.parse::<i64>().ok()?.into()
    };
    // More digits are less than a nanosecond.
    let fraction = fraction.get(..fraction.len().min(15))?;
    let mut nanos = count.checked_mul(*unit)?;
    if !fraction.is_empty() {
        let digits: i128 = fraction.parse().ok()?;
        nanos += digits * unit / 10_i128.pow(fraction.len() as u32);
    }
    Some((nanos, rest))
}

/// Returns a duration as a string: seconds, as a decimal number.
pub(super) fn seconds(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let size = nanos.unsigned_abs();
    let (whole, rest) = (size / 1_000_000_000, size % 1_000_000_000);
    match rest {
        0 => format!("{sign}{whole}s"),
        rest => {
            let fraction = format!("{rest:09}");
            format!("{sign}{whole}.{}s", fraction.trim_end_matches('0'))
        }
    }
}

/// Returns a time zone by its name, or by its offset: `Europe/Berlin`, `+02:00`.
pub(super) fn zone(name: &str) -> Option<TimeZone> {
    let Some((hours, minutes)) = name.split_once(':') else {
        return match name {
            "" | "UTC" => Some(TimeZone::UTC),
            other => TimeZone::get(other).ok(),
        };
    };
    let is_negative = hours.starts_with('-');
    let hours: i32 = hours.trim_start_matches(['+', '-']).parse().ok()?;
    let minutes: i32 = minutes.parse().ok()?;
    if !(0..=23).contains(&hours) || !(0..=59).contains(&minutes) {
        return None;
    }
    let seconds = hours * 3_600 + minutes * 60;
    let offset = jiff::tz::Offset::from_seconds(if is_negative { -seconds } else { seconds });
    Some(TimeZone::fixed(offset.ok()?))
}

#[cfg(test)]
mod tests {
    use super::{duration, go_duration, seconds};

    #[test]
    fn durations_are_read_as_go_does() {
        let cases = [
            ("1h30m", Some(5_400_000_000_000)),
            ("-1.5s", Some(-1_500_000_000)),
            ("0", Some(0)),
            ("1ms2us3ns", Some(1_002_003)),
            (".5s", Some(500_000_000)),
            ("", None),
            ("1", None),
            ("1x", None),
            (".s", None),
            ("1..5s", None),
            ("9999999h", None),
        ];
        for (text, nanos) in cases {
            assert_eq!(go_duration(text), nanos, "{text}");
        }
        assert_eq!(duration("2 hours"), go_duration("2h"));
    }

    #[test]
    fn durations_are_printed_in_seconds() {
        let cases = [(0, "0s"), (1_500_000_000, "1.5s"), (-1, "-0.000000001s")];
        for (nanos, text) in cases {
            assert_eq!(seconds(nanos), text);
        }
    }
}
