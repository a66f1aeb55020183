//! Label selectors.

use std::collections::BTreeMap;

use setpoint_model::selector::Selector;

use crate::stretch::stretch_text;

/// Parses a selector and matches it. A valid one must round-trip.
pub fn run(input: &[u8]) {
    let Ok(selector) = Selector::parse(&stretch_text(input)) else {
        return;
    };
    let labels: BTreeMap<String, String> = [("app", "web"), ("tier", "5")]
        .map(|(key, value)| (key.into(), value.into()))
        .into();
    let matched = selector.matches(&labels);
    let written = selector.to_string();
    let again = Selector::parse(&written).expect("a displayed selector can be parsed");
    assert_eq!(again.to_string(), written);
    assert_eq!(again.matches(&labels), matched, "{written}");
}
