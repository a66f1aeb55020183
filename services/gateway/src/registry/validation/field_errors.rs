//! What is wrong with an object, field by field, in Kubernetes' words.

use std::fmt::{self, Display, Write as _};

use serde::Serialize;
use setpoint_codec::Kind;
use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, Reason};

use crate::registry::validation::field_path::FieldPath;

/// All that validation found; valid means none.
#[derive(Debug, Default)]
pub struct FieldErrors {
    found: Vec<StatusCause>,
}

impl FieldErrors {
    /// The field must be there. `detail` may be empty.
    pub fn required(&mut self, path: &FieldPath<'_>, detail: &str) {
        self.found("FieldValueRequired", path, "Required value", detail);
    }

    /// The value is not a good one.
    pub fn invalid(&mut self, path: &FieldPath<'_>, value: impl Serialize, detail: impl Display) {
        let head = format!("Invalid value: {}", shown(&value));
        self.found("FieldValueInvalid", path, &head, detail);
    }

    /// The value is none of the few that there are.
    pub fn unsupported(&mut self, path: &FieldPath<'_>, value: &str, supported: &[&str]) {
        let head = format!("Unsupported value: {}", shown(&value));
        let list: Vec<_> = supported.iter().map(|value| format!("{value:?}")).collect();
        let detail = format!("supported values: {}", list.join(", "));
        self.found("FieldValueNotSupported", path, &head, detail);
    }

    /// The value must be unique and is not.
    pub fn duplicate(&mut self, path: &FieldPath<'_>, value: impl Serialize) {
        self.duplicate_because(path, value, "");
    }

    /// As [`Self::duplicate`], of a value that need not be unique as a whole.
    pub fn duplicate_because(&mut self, path: &FieldPath<'_>, value: impl Serialize, detail: &str) {
        let head = format!("Duplicate value: {}", shown(&value));
        self.found("FieldValueDuplicate", path, &head, detail);
    }

    /// The field may not be set or changed.
    pub fn forbidden(&mut self, path: &FieldPath<'_>, detail: impl Display) {
        self.found("FieldValueForbidden", path, "Forbidden", detail);
    }

    /// The value names something that is not there.
    pub fn not_found(&mut self, path: &FieldPath<'_>, value: &str) {
        let head = format!("Not found: {}", shown(&value));
        self.found("FieldValueNotFound", path, &head, "");
    }

    /// The value is longer than `limit` bytes.
    pub fn too_long(&mut self, path: &FieldPath<'_>, limit: usize) {
        let detail = format!("may not be more than {limit} bytes");
        self.found("FieldValueTooLong", path, "Too long", detail);
    }

    /// Each of `complaints` about one value.
    pub fn all_invalid(&mut self, path: &FieldPath<'_>, value: &str, complaints: Vec<String>) {
        for complaint in complaints {
            self.invalid(path, value, complaint);
        }
    }

    /// A number that may not be negative.
    pub fn non_negative(&mut self, path: &FieldPath<'_>, value: impl Into<i64>) {
        let value = value.into();
        if value < 0 {
            self.invalid(path, value, "must be greater than or equal to 0");
        }
    }

    /// A number that must be positive.
    pub fn positive(&mut self, path: &FieldPath<'_>, value: impl Into<i64>) {
        let value = value.into();
        if value <= 0 {
            self.invalid(path, value, "must be greater than 0");
        }
    }

    /// A list that may not have more than `limit` entries.
    pub fn at_most(&mut self, path: &FieldPath<'_>, count: usize, limit: usize) {
        if count > limit {
            let head = format!("Too many: {count}");
            let detail = format!("must have at most {limit} items");
            self.found("FieldValueTooMany", path, &head, detail);
        }
    }

    /// One of a few values, if it is given.
    pub fn one_of_if_given(
        &mut self,
        path: &FieldPath<'_>,
        value: Option<&str>,
        supported: &[&str],
    ) {
        if let Some(value) = value
            && !supported.contains(&value)
        {
            self.unsupported(path, value, supported);
        }
    }

    /// One of a few values; empty is for others to judge.
    pub fn one_of(&mut self, path: &FieldPath<'_>, value: &str, supported: &[&str]) {
        if !value.is_empty() && !supported.contains(&value) {
            self.unsupported(path, value, supported);
        }
    }

    /// A value that may not change.
    pub fn immutable<T: PartialEq + Serialize>(&mut self, path: &FieldPath<'_>, new: &T, old: &T) {
        if new != old {
            self.invalid(path, new, "field is immutable");
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.found.len()
    }

    fn found(&mut self, reason: &str, path: &FieldPath<'_>, head: &str, detail: impl Display) {
        let mut message = head.to_owned();
        let detail = detail.to_string();
        if !detail.is_empty() {
            let _ = write!(message, ": {detail}");
        }
        self.found.push(StatusCause {
            reason: reason.to_owned(),
            message,
            field: path.to_string(),
        });
    }

    /// `Invalid` with all of them, or nothing if there are none.
    pub fn into_result(self, kind: &Kind, name: &str) -> Result<(), ApiError> {
        if self.found.is_empty() {
            return Ok(());
        }
        let message = format!(
            "{} {name:?} is invalid: {self}",
            qualified(kind.kind.as_str(), kind.group.as_str())
        );
        Err(
            ApiError::new(Reason::Invalid, message).with_details(StatusDetails {
                name: name.to_owned(),
                group: kind.group.clone(),
                kind: kind.kind.clone(),
                causes: self.found,
                ..Default::default()
            }),
        )
    }
}

impl Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |cause: &StatusCause| format!("{}: {}", cause.field, cause.message);
        match self.found.as_slice() {
            [one] => f.write_str(&line(one)),
            many => write!(
                f,
                "[{}]",
                many.iter().map(line).collect::<Vec<_>>().join(", ")
            ),
        }
    }
}

/// `Deployment.apps`, or `Pod` in the group without a name.
fn qualified(kind: &str, group: &str) -> String {
    match group {
        "" => kind.to_owned(),
        group => format!("{kind}.{group}"),
    }
}

fn shown(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use setpoint_codec::kinds;

    use super::*;

    fn error(errors: FieldErrors) -> ApiError {
        let kind = kinds().by_resource("deployments.apps").unwrap();
        errors.into_result(kind, "web").unwrap_err()
    }

    #[test]
    fn one_problem_is_told_in_a_sentence_and_as_a_cause() {
        let mut errors = FieldErrors::default();
        errors.invalid(
            &FieldPath::root("spec").field("replicas"),
            -1,
            "must not be",
        );
        let error = error(errors);
        assert_eq!(
            error.message,
            r#"Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1: must not be"#
        );
        let cause = &error.causes()[0];
        assert_eq!(cause.reason, "FieldValueInvalid");
        assert_eq!(cause.field, "spec.replicas");
        assert_eq!(cause.message, "Invalid value: -1: must not be");
    }

    #[test]
    fn several_problems_are_told_as_a_list() {
        let mut errors = FieldErrors::default();
        let spec = FieldPath::root("spec");
        errors.required(&spec.field("selector"), "");
        errors.one_of(&spec.field("type"), "x", &["A", "B"]);
        assert_eq!(
            error(errors).message,
            concat!(
                r#"Deployment.apps "web" is invalid: [spec.selector: Required value, "#,
                r#"spec.type: Unsupported value: "x": supported values: "A", "B"]"#
            )
        );
    }
}
