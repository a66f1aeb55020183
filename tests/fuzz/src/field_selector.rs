//! Field selectors.

use setpoint_model::selector::Fields;

use crate::stretch::stretch_text;

/// Parses a selector and matches it. A valid one must round-trip.
pub fn run(input: &[u8]) {
    let Ok(fields) = Fields::parse(&stretch_text(input)) else {
        return;
    };
    let _ = fields.exact("metadata.name");
    let _ = fields.matches(|path| (path == "metadata.name").then(|| "web".to_owned()));
    let written = fields.to_string();
    let again = Fields::parse(&written).expect("a displayed selector can be parsed");
    assert_eq!(again, fields, "{written}");
}
