//! The header `traceparent`.

use setpoint_proto::Traceparent;

/// Parses the header. A valid one must round-trip.
pub fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(span) = text.parse::<Traceparent>() else {
        return;
    };
    assert!(span.is_valid());
    let again: Traceparent = span
        .to_string()
        .parse()
        .expect("a displayed header can be parsed");
    assert_eq!(again, span);
}
