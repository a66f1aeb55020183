//! Field selectors as text.

use setpoint_model::selector::Fields;

use crate::stretch::stretch_text;

/// Parses a selector and matches it. It must be the same after it was written and read again.
pub fn run(input: &[u8]) {
    let Ok(fields) = Fields::parse(&stretch_text(input)) else {
        return;
    };
    let _ = fields.exact("metadata.name");
    let _ = fields.matches(|path| (path == "metadata.name").then(|| "web".to_owned()));
    let written = fields.to_string();
    let again = Fields::parse(&written).expect("what was written can be read");
    assert_eq!(again, fields, "{written}");
}
