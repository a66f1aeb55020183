//! Formats durations and points in time for people.

use std::time::Duration;

use setpoint_proto::trace::now_ns;

/// Formats a time, in nanoseconds since 1970, relative to now: `in 5s`, `3m2s ago`. 0 is an unknown time.
pub fn relative(at_ns: i64) -> String {
    let distance = at_ns.saturating_sub(now_ns());
    match at_ns {
        0 => "at an unknown time".to_owned(),
        _ if distance > 0 => format!("in {}", short(distance)),
        _ => format!("{} ago", short(-distance)),
    }
}

/// Formats a duration in nanoseconds, without its sign, in its one or two largest units.
pub fn short(ns: i64) -> String {
    let duration = Duration::from_nanos(ns.unsigned_abs());
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..120 => format!("{seconds}s"),
        120..7200 => format!("{}m{}s", seconds / 60, seconds % 60),
        7200..172_800 => format!("{}h{}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Formats a duration in seconds with two decimals.
pub fn seconds(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_formatted_in_its_largest_units() {
        let second = 1_000_000_000;
        let durations = [
            second / 2,
            90 * second,
            125 * second,
            7_260 * second,
            200_000 * second,
        ];
        assert_eq!(durations.map(short), ["500ms", "90s", "2m5s", "2h1m", "2d"]);
        assert!(relative(now_ns() + 100 * second).starts_with("in "));
        assert!(relative(now_ns() - 100 * second).ends_with(" ago"));
        assert_eq!(relative(0), "at an unknown time");
    }
}
