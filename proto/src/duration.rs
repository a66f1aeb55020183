//! `Duration`: nanoseconds, which JSON writes as Go does: `1m30s`, `10.5s`, `500ms`.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::meta::Duration;

const SECOND: u64 = 1_000_000_000;
/// Go's units, by their lengths in nanoseconds. Longer names are before names that they end with.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("h", 3600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
];

impl From<std::time::Duration> for Duration {
    fn from(duration: std::time::Duration) -> Self {
        Self {
            duration: crate::trace::duration_ns(duration),
        }
    }
}

impl Duration {
    /// Returns the length; zero for a negative one.
    pub fn length(&self) -> std::time::Duration {
        std::time::Duration::from_nanos(u64::try_from(self.duration).unwrap_or_default())
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.duration < 0 { "-" } else { "" };
        let total = self.duration.unsigned_abs();
        f.write_str(sign)?;
        if total < SECOND {
            return small(total, f);
        }
        let (hours, minutes) = (total / (3600 * SECOND), total / (60 * SECOND) % 60);
        match (hours, minutes) {
            (0, 0) => {}
            (0, minutes) => write!(f, "{minutes}m")?,
            (hours, minutes) => write!(f, "{hours}h{minutes}m")?,
        }
        decimal(total % (60 * SECOND), SECOND, f)?;
        f.write_str("s")
    }
}

/// Writes a duration of less than a second in the largest unit that is not larger than it.
fn small(total: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (unit, name) = match total {
        0 => return f.write_str("0s"),
        1..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "µs"),
        _ => (1_000_000, "ms"),
    };
    decimal(total, unit, f)?;
    f.write_str(name)
}

/// Writes `number / unit` without trailing zeros.
fn decimal(number: u64, unit: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}", number / unit)?;
    let (rest, width) = (number % unit, unit.ilog10() as usize);
    if rest == 0 {
        return Ok(());
    }
    let digits = format!("{rest:0width$}");
    write!(f, ".{}", digits.trim_end_matches('0'))
}

/// Parses a duration as Go does; `None` if it is invalid or does not fit.
fn parse(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total = None;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let (name, unit) = UNITS.iter().find(|(name, _)| after.starts_with(name))?;
        let part = scaled(number, *unit)?;
        total = Some(i64::checked_add(total.unwrap_or_default(), part)?);
        rest = &after[name.len()..];
    }
    total.map(|total| sign * total)
}

/// Returns a decimal number times `unit`, rounded down.
fn scaled(number: &str, unit: u64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = |text: &str| match text {
        "" => Some(0),
        text => text.parse::<u64>().ok(),
    };
    let mut total = digits(whole)?.checked_mul(unit)?;
    let mut place = unit;
    for digit in fraction.bytes() {
        place /= 10;
        total = total.checked_add(place.checked_mul(u64::from(digit.checked_sub(b'0')?))?)?;
    }
    total.try_into().ok()
}

impl FromStr for Duration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        let duration = parse(text).ok_or_else(|| InvalidDuration(text.to_owned()))?;
        Ok(Self { duration })
    }
}

/// The error of a text that is not a duration, in Go's words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("time: invalid duration {0:?}")]
pub struct InvalidDuration(String);

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else {
            return Ok(Self::default());
        };
        text.parse().map_err(de::Error::custom)
    }
}
