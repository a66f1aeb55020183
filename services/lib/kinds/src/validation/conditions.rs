//! Validation of conditions of the common type.

use std::collections::BTreeSet;

use setpoint_model::names;
use setpoint_proto::meta::Condition;

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const STATUSES: &[&str] = &["False", "True", "Unknown"];
/// The lengths of a reason and of a message in bytes.
const MAX_REASON: usize = 1024;
const MAX_MESSAGE: usize = 32 * 1024;

/// Validates the conditions, of which there may be one of each type (upstream: `ValidateConditions`).
pub fn validate<'c>(
    conditions: impl IntoIterator<Item = &'c Condition>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let mut types = BTreeSet::new();
    for (index, condition) in conditions.into_iter().enumerate() {
        let path = path.index(index);
        if !types.insert(&condition.r#type) {
            errors.duplicate(&path.field("type"), &condition.r#type);
        }
        validate_one(condition, &path, errors);
    }
}

fn validate_one(condition: &Condition, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (at, of) = (path.field("type"), condition.r#type.as_str());
    errors.check(&at, of, names::validate_qualified_name);
    errors.one_of(&path.field("status"), condition.status.as_str(), STATUSES);
    if condition.observed_generation < 0 {
        let detail = "must be greater than or equal to zero";
        let at = path.field("observedGeneration");
        errors.invalid(&at, condition.observed_generation, detail);
    }
    if condition.last_transition_time.timestamp().is_none() {
        errors.required(&path.field("lastTransitionTime"), "must be set");
    }
    validate_reason(&condition.reason, &path.field("reason"), errors);
    if condition.message.len() > MAX_MESSAGE {
        errors.too_long(&path.field("message"), MAX_MESSAGE);
    }
}

fn validate_reason(reason: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let valid = reason.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && reason.ends_with(word)
        && reason
            .chars()
            .all(|letter| word(letter) || ",:".contains(letter));
    if reason.is_empty() {
        errors.required(path, "must be set");
    } else if !valid {
        let detail = "a condition reason must start with alphabetic character, optionally followed by a string of \
            alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or \
            'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is \
            '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
        errors.invalid(path, reason, detail);
    }
    if reason.len() > MAX_REASON {
        errors.too_long(path, MAX_REASON);
    }
}
