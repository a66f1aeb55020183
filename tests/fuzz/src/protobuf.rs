//! An object as protobuf: the first byte says of which kind, the rest is the message.

use crate::json::kind;

/// Decodes a message. What it decodes to must not change by being encoded, and must have a JSON.
pub fn run(input: &[u8]) {
    let Some((first, raw)) = input.split_first() else {
        return;
    };
    let kind = kind(*first);
    let Ok(object) = kind.decode(raw) else {
        return;
    };
    let raw = object.encode();
    let again = kind.decode(&raw).expect("what was encoded can be decoded");
    assert_eq!(again.encode(), raw);
    let json = object.to_json();
    serde_json::from_slice::<serde_json::Value>(&json).expect("an object's JSON is JSON");
    let _ = kind.from_json(&json);
}
