//! Times, as JSON and as protobuf.

use prost::Message as _;
use setpoint_model::time::seconds_after;
use setpoint_proto::meta::{MicroTime, Time};

/// Decodes the input both as JSON text and as a message. Valid ones must round-trip through JSON.
pub fn run(input: &[u8]) {
    let text = serde_json::Value::from(String::from_utf8_lossy(input)).to_string();
    if let Ok(time) = serde_json::from_str::<Time>(&text) {
        check(&time);
    }
    if let Ok(time) = serde_json::from_str::<MicroTime>(&text) {
        check_micro(&time);
    }
    if let Ok(time) = Time::decode(input) {
        check(&time);
    }
    if let Ok(time) = MicroTime::decode(input) {
        check_micro(&time);
    }
}

fn check(time: &Time) {
    let json = serde_json::to_string(time).unwrap();
    let again: Time = serde_json::from_str(&json).expect("a serialized time can be decoded");
    assert_eq!(serde_json::to_string(&again).unwrap(), json);
    if let Some(start) = time.timestamp() {
        for seconds in [i64::MIN, -1, 0, 1, i64::MAX, start.as_second()] {
            seconds_after(start, seconds);
        }
    }
}

fn check_micro(time: &MicroTime) {
    let json = serde_json::to_string(time).unwrap();
    let again: MicroTime = serde_json::from_str(&json).expect("a serialized time can be decoded");
    assert_eq!(serde_json::to_string(&again).unwrap(), json);
}
