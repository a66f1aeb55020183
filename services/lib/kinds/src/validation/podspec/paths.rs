//! Validation of file paths and modes.

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// The valid file modes.
const MODES: std::ops::RangeInclusive<i32> = 0..=0o777;

/// Validates a path that must stay within its folder.
pub fn validate_descending(text: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if text.starts_with('/') {
        errors.invalid(path, text, "must be a relative path");
    }
    validate_no_backsteps(text, path, errors);
}

/// Validates that no segment of a path is `..`.
pub fn validate_no_backsteps(text: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if has_backsteps(text) {
        errors.invalid(path, text, "must not contain '..'");
    }
}

/// As [`validate_descending`], and validates that the path does not start with `..`, which node agents reserve.
pub fn validate_not_reserved(text: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_descending(text, path, errors);
    if text.starts_with("..") && !text.starts_with("../") {
        errors.invalid(path, text, "must not start with '..'");
    }
}

/// Validates a file mode, if it is set.
pub fn validate_mode(mode: Option<i32>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(mode) = mode
        && !MODES.contains(&mode)
    {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.invalid(path, mode, detail);
    }
}

/// Returns whether a segment of a path is `..`.
pub fn has_backsteps(text: &str) -> bool {
    text.split('/').any(|part| part == "..")
}
