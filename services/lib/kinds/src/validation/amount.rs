//! Validation of numbers that may be percentages, such as `maxUnavailable`.

use setpoint_proto::meta::IntOrString;

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// A number of Pods, absolute or as a percentage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    Count(i32),
    Percent(i32),
}

impl Amount {
    pub const fn is_zero(self) -> bool {
        matches!(self, Self::Count(0) | Self::Percent(0))
    }

    /// Parses a value. Other text than a percentage counts as the number that it is, else as 0.
    pub fn of(value: &IntOrString) -> Self {
        match value.as_str().map(|text| percentage(text).ok_or(text)) {
            None => Self::Count(value.int_val),
            Some(Ok(percent)) => Self::Percent(percent),
            Some(Err(text)) => Self::Count(text.parse().unwrap_or_default()),
        }
    }

    /// Parses and validates a value: a number that is not negative, or a percentage.
    pub fn validate(value: &IntOrString, path: &FieldPath<'_>, errors: &mut FieldErrors) -> Self {
        match value.as_str() {
            None => errors.non_negative(path, value.int_val),
            Some(text) if percentage(text).is_none() => {
                let detail = "a valid percent string must be a numeric string followed by an ending '%' \
                    (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
                errors.invalid(path, text, detail);
            }
            Some(_) => {}
        }
        Self::of(value)
    }
}

/// Validates that a percentage is at most 100%.
pub fn validate_percentage(value: &IntOrString, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if matches!(Amount::of(value), Amount::Percent(percent) if percent > 100) {
        errors.invalid(path, value, "must not be greater than 100%");
    }
}

/// Returns the number of a percentage; the largest number if it overflows.
fn percentage(text: &str) -> Option<i32> {
    let digits = text.strip_suffix('%')?;
    let valid = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    valid.then(|| digits.parse().unwrap_or(i32::MAX))
}
