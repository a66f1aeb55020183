//! Lengths, patterns and formats of strings.

use setpoint_cel::Node;
use setpoint_cel::strfmt;

use super::outcome::Outcome;
use crate::path::Path;
use crate::violation::{Kind, Violation};

/// Checks length and pattern; the first error counts.
pub(super) fn check(node: &Node, text: &str, path: &Path<'_>) -> Outcome {
    let length = text.chars().count() as i64;
    if let Some(max) = node.bounds.max_length.filter(|max| length > *max) {
        return Outcome::failed(Violation::too_long(path, max));
    }
    if let Some(min) = node.bounds.min_length.filter(|min| length < *min) {
        let detail = format!("{path} in body should be at least {min} chars long");
        return Outcome::failed(Violation::invalid(path, text, detail));
    }
    match &node.pattern {
        Some(pattern) if !pattern.is_match(text) => {
            let detail = format!("{path} in body should match '{}'", pattern.source());
            Outcome::failed(Violation::invalid(path, text, detail))
        }
        _ => Outcome::default(),
    }
}

pub(super) fn check_format(node: &Node, text: &str, path: &Path<'_>) -> Outcome {
    if strfmt::allows(&node.format, text) {
        return Outcome::default();
    }
    let quoted = setpoint_cel::go::quote(text);
    let detail = format!("{path} in body must be of type {}: {quoted}", node.format);
    Outcome::failed(Violation::new(
        Kind::TypeInvalid,
        path,
        Some(text.into()),
        detail,
    ))
}
