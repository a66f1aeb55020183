//! Formats durations as kubectl does.

use jiff::Timestamp;
use setpoint_proto::meta;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Returns the time from `moment` to `now`; `<unknown>` without a moment.
pub fn since(moment: Option<Timestamp>, now: Timestamp) -> String {
    match moment {
        Some(moment) => duration(now.as_second() - moment.as_second()),
        None => "<unknown>".into(),
    }
}

/// Returns the time from a time in a message to `now`; `<unknown>` if it is not set.
pub fn since_time(time: Option<&meta::Time>, now: Timestamp) -> String {
    since(time.and_then(meta::Time::timestamp), now)
}

/// Formats a duration. A clock skew of one second is hidden; a greater one is `<invalid>`.
pub fn duration(seconds: i64) -> String {
    match seconds {
        ..-1 => "<invalid>".into(),
        -1 => "0s".into(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(seconds, MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => pair(seconds, HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => pair(seconds, DAY, "d", HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => pair(seconds, YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn pair(seconds: i64, large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    match (seconds / large, seconds % large / small) {
        (whole, 0) => format!("{whole}{large_unit}"),
        (whole, rest) => format!("{whole}{large_unit}{rest}{small_unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_formatted_as_in_kubectl() {
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (3 * HOUR + 5 * MINUTE, "3h5m"),
            (8 * HOUR, "8h"),
            (47 * HOUR, "47h"),
            (2 * DAY + 3 * HOUR, "2d3h"),
            (8 * DAY, "8d"),
            (729 * DAY, "729d"),
            (2 * YEAR + 10 * DAY, "2y10d"),
            (8 * YEAR, "8y"),
        ] {
            assert_eq!(duration(seconds), expected, "{seconds}");
        }
    }
}
