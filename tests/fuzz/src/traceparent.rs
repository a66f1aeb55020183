//! The header `traceparent`.

use setpoint_proto::Traceparent;

/// Parses the header. What was read must be the same after it was written again.
pub fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(span) = text.parse::<Traceparent>() else {
        return;
    };
    assert!(span.is_valid());
    let again: Traceparent = span
        .to_string()
        .parse()
        .expect("what was written can be read");
    assert_eq!(again, span);
}
