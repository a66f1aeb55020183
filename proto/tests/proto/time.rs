//! Times in JSON.

use jiff::Timestamp;
use setpoint_proto::meta::{MicroTime, Time};

#[test]
fn times_round_trip_through_json() {
    let timestamp: Timestamp = "2026-01-02T03:04:05.123456789Z".parse().unwrap();
    let whole: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    assert_eq!(
        MicroTime::from(whole).to_string(),
        "2026-01-02T03:04:05.000000Z"
    );
    let (time, micro) = (Time::from(timestamp), MicroTime::from(timestamp));
    assert_eq!(
        serde_json::to_string(&time).unwrap(),
        r#""2026-01-02T03:04:05Z""#
    );
    assert_eq!(
        serde_json::to_string(&micro).unwrap(),
        r#""2026-01-02T03:04:05.123456Z""#
    );
    assert_eq!(
        serde_json::from_str::<Time>(r#""2026-01-02T03:04:05Z""#).unwrap(),
        time
    );
    assert_eq!(
        serde_json::from_str::<MicroTime>(&format!("\"{micro}\"")).unwrap(),
        micro
    );
}
