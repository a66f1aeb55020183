//! Sums of timestamps and durations that clients set.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Returns the time `seconds` after `start`, saturating at the bounds of `Timestamp`.
///
/// Durations in API objects are unchecked 64-bit numbers; `Timestamp + SignedDuration` panics past the year 9999.
pub fn seconds_after(start: Timestamp, seconds: i64) -> Timestamp {
    let bound = if seconds.is_negative() {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    start
        .checked_add(SignedDuration::from_secs(seconds))
        .unwrap_or(bound)
}

/// Returns the time `duration` after `start`, saturating at `Timestamp::MAX`.
pub fn after(start: Timestamp, duration: Duration) -> Timestamp {
    start.checked_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks F1.
    #[test]
    fn sums_saturate_at_the_bounds_of_timestamps() {
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
