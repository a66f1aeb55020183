//! Paths of files that must stay below a folder.

use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::validation::field_path::FieldPath;

/// Permissions that a file may be given.
const MODES: std::ops::RangeInclusive<i32> = 0..=0o777;

/// A path within a folder, which it never leaves.
pub fn validate_descending(text: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if text.starts_with('/') {
        errors.invalid(path, text, "must be a relative path");
    }
    validate_no_backsteps(text, path, errors);
}

/// A path without `..` as one of its parts.
pub fn validate_no_backsteps(text: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if has_backsteps(text) {
        errors.invalid(path, text, "must not contain '..'");
    }
}

/// As [`validate_descending`]; names that begin with two dots are the node's own.
pub fn validate_not_reserved(text: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_descending(text, path, errors);
    if text.starts_with("..") && !text.starts_with("../") {
        errors.invalid(path, text, "must not start with '..'");
    }
}

/// Permissions, if they are given.
pub fn validate_mode(mode: Option<i32>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(mode) = mode
        && !MODES.contains(&mode)
    {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.invalid(path, mode, detail);
    }
}

/// Is `..` one of its parts?
pub fn has_backsteps(text: &str) -> bool {
    text.split('/').any(|part| part == "..")
}
