//! Paths of files that must stay below a folder.

use crate::registry::validation::field_errors::Problems;
use crate::registry::validation::field_path::Path;

/// Permissions that a file may be given.
const MODES: std::ops::RangeInclusive<i32> = 0..=0o777;

/// A path within a folder, which it never leaves.
pub fn validate_descending(text: &str, path: &Path<'_>, problems: &mut Problems) {
    if text.starts_with('/') {
        problems.invalid(path, text, "must be a relative path");
    }
    validate_no_backsteps(text, path, problems);
}

/// A path without `..` as one of its parts.
pub fn validate_no_backsteps(text: &str, path: &Path<'_>, problems: &mut Problems) {
    if has_backsteps(text) {
        problems.invalid(path, text, "must not contain '..'");
    }
}

/// As [`validate_descending`]; names that begin with two dots are the node's own.
pub fn validate_not_reserved(text: &str, path: &Path<'_>, problems: &mut Problems) {
    validate_descending(text, path, problems);
    if text.starts_with("..") && !text.starts_with("../") {
        problems.invalid(path, text, "must not start with '..'");
    }
}

/// Permissions, if they are given.
pub fn validate_mode(mode: Option<i32>, path: &Path<'_>, problems: &mut Problems) {
    if let Some(mode) = mode
        && !MODES.contains(&mode)
    {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        problems.invalid(path, mode, detail);
    }
}

/// Is `..` one of its parts?
pub fn has_backsteps(text: &str) -> bool {
    text.split('/').any(|part| part == "..")
}
