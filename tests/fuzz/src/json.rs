//! JSON objects. The first byte selects the kind, the rest is the document.

use setpoint_codec::{Kind, kinds, strict};

use crate::stretch::stretch;

/// Decodes a document as the gateway does. A valid one must round-trip through protobuf and JSON.
pub fn run(input: &[u8]) {
    let Some((first, document)) = input.split_first() else {
        return;
    };
    let kind = kind(*first);
    let document = stretch(document);
    let found = strict::unknown_fields(kind, &document);
    let Ok(object) = kind.from_json(&document) else {
        return;
    };
    let (raw, json) = (object.encode(), object.to_json());
    let stored = kind.decode(&raw).expect("an encoded object can be decoded");
    assert_eq!(text(&stored.to_json()), text(&json), "through protobuf");
    assert_eq!(
        strict::unknown_fields(kind, &json),
        [""; 0],
        "read {found:?}"
    );
    let read = kind
        .from_json(&json)
        .expect("a serialized object can be decoded");
    assert_eq!(text(&read.to_json()), text(&json), "through JSON");
}

/// Returns the kind with this number, of all kinds including request bodies.
pub fn kind(number: u8) -> &'static Kind {
    let count = kinds().with_bodies().count();
    let mut all = kinds().with_bodies();
    all.nth(usize::from(number) % count)
        .expect("the number is below the count")
}

pub fn text(json: &[u8]) -> &str {
    std::str::from_utf8(json).expect("JSON is UTF-8")
}
