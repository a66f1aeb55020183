//! Protobuf objects. The first byte selects the kind, the rest is the message.

use crate::json::kind;

/// Decodes a message. A valid one must round-trip and have a JSON form.
pub fn run(input: &[u8]) {
    let Some((first, raw)) = input.split_first() else {
        return;
    };
    let kind = kind(*first);
    let Ok(object) = kind.decode(raw) else {
        return;
    };
    let raw = object.encode();
    let again = kind.decode(&raw).expect("an encoded object can be decoded");
    assert_eq!(again.encode(), raw);
    let json = object.to_json();
    serde_json::from_slice::<serde_json::Value>(&json).expect("the JSON of an object is valid");
    let _ = kind.from_json(&json);
}
