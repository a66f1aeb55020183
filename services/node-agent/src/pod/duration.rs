//! Formats durations as Go does, to the millisecond: `250ms`, `1.5s`, `2m40s`.

use std::time::Duration;

use setpoint_proto::meta;

pub fn print(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    meta::Duration::from(Duration::from_millis(millis)).to_string()
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
