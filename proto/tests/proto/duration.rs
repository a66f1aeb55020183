//! Durations as Go writes them.

use setpoint_proto::meta::Duration;

#[test]
fn durations_are_written_and_read_as_go_does() {
    for (duration, text) in [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5µs"),
        (500_000_000, "500ms"),
        (10_062_000_000, "10.062s"),
        (60_000_000_000, "1m0s"),
        (90_000_000_000, "1m30s"),
        (3_600_000_000_000, "1h0m0s"),
        (-1_500_000_000, "-1.5s"),
    ] {
        let written = Duration { duration };
        assert_eq!(written.to_string(), text);
        let json = serde_json::to_string(&written).unwrap();
        assert_eq!(serde_json::from_str::<Duration>(&json).unwrap(), written);
    }
    for invalid in ["", "s", "1", ".s", "1x", "1s2", "99999999999h"] {
        assert!(invalid.parse::<Duration>().is_err(), "{invalid}");
    }
    let duration = 5_400_000_000_000;
    assert_eq!("1.5h".parse(), Ok(Duration { duration }));
}
