//! Formats durations as Go does, to the millisecond: `250ms`, `1.5s`, `2m40s`.

use std::time::Duration;

pub fn print(duration: Duration) -> String {
    let millis = duration.as_millis();
    let (hours, minutes) = (millis / 3_600_000, millis / 60_000 % 60);
    let seconds = seconds(millis % 60_000);
    match (hours, minutes) {
        (0, 0) if (1..1000).contains(&millis) => format!("{millis}ms"),
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// Formats seconds without trailing zeros.
fn seconds(millis: u128) -> String {
    let exact = format!("{}.{:03}", millis / 1000, millis % 1000);
    exact.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_formatted_as_in_go() {
        let printed = [0, 7, 250, 1_500, 10_000, 80_000, 300_000, 3_600_020]
            .map(|millis| print(Duration::from_millis(millis)));
        let expected = [
            "0s",
            "7ms",
            "250ms",
            "1.5s",
            "10s",
            "1m20s",
            "5m0s",
            "1h0m0.02s",
        ];
        assert_eq!(printed, expected);
    }
}
