//! Sums of moments and durations that clients send.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Returns the moment `seconds` after `start`, or the last (for negative `seconds`, the first) moment that a timestamp
/// can hold if the sum lies beyond it.
///
/// Durations in API objects are unchecked 64-bit numbers; `Timestamp + SignedDuration` panics past the year 9999.
pub fn seconds_after(start: Timestamp, seconds: i64) -> Timestamp {
    let beyond = if seconds.is_negative() {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    start
        .checked_add(SignedDuration::from_secs(seconds))
        .unwrap_or(beyond)
}

/// Returns the moment `duration` after `start`, or the last moment that a timestamp can hold if the sum lies beyond it.
pub fn after(start: Timestamp, duration: Duration) -> Timestamp {
    start.checked_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks F1.
    #[test]
    fn a_sum_beyond_the_last_moment_is_the_last_moment() {
        let start = Timestamp::UNIX_EPOCH;
        assert_eq!(seconds_after(start, 5).as_second(), 5);
        assert_eq!(seconds_after(start, -5).as_second(), -5);
        assert_eq!(seconds_after(start, i64::MAX), Timestamp::MAX);
        assert_eq!(seconds_after(start, i64::MIN), Timestamp::MIN);
        assert_eq!(seconds_after(Timestamp::MAX, 1), Timestamp::MAX);
        assert_eq!(after(start, Duration::from_millis(5)).as_millisecond(), 5);
        assert_eq!(after(start, Duration::MAX), Timestamp::MAX);
    }
}
