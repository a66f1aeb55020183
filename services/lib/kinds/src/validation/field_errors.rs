//! The errors of a validation, by field (upstream: `field.ErrorList`).

use std::fmt::{self, Display, Write as _};
use std::mem;

use serde::Serialize;
use setpoint_codec::Kind;
use setpoint_model::names;
use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, Reason};
use setpoint_schema::Violation;

use crate::validation::field_path::FieldPath;

/// A list of errors. Each method named after a requirement adds an error if the value does not meet it.
#[derive(Debug, Default)]
pub struct FieldErrors {
    causes: Vec<StatusCause>,
    /// Warnings about parts that the write does not change, which would be errors if it did.
    forgiven: Vec<String>,
}

impl FieldErrors {
    /// Adds the error that the field must be set. `detail` may be empty.
    pub fn required(&mut self, path: &FieldPath<'_>, detail: &str) {
        self.add("FieldValueRequired", path, "Required value", detail);
    }

    /// Adds the error that the value is invalid.
    pub fn invalid(&mut self, path: &FieldPath<'_>, value: impl Serialize, detail: impl Display) {
        let head = format!("Invalid value: {}", json(&value));
        self.add("FieldValueInvalid", path, &head, detail);
    }

    /// Adds the error that the value is invalid, without the value.
    pub fn invalid_without_value(&mut self, path: &FieldPath<'_>, detail: &str) {
        self.add("FieldValueInvalid", path, "Invalid value", detail);
    }

    /// Adds the error that the value is not a supported one.
    pub fn unsupported(&mut self, path: &FieldPath<'_>, value: &str, supported: &[&str]) {
        let head = format!("Unsupported value: {}", json(&value));
        let list: Vec<_> = supported.iter().map(|value| format!("{value:?}")).collect();
        let detail = format!("supported values: {}", list.join(", "));
        self.add("FieldValueNotSupported", path, &head, detail);
    }

    /// Adds the error that the value must be unique.
    pub fn duplicate(&mut self, path: &FieldPath<'_>, value: impl Serialize) {
        self.duplicate_with_detail(path, value, "");
    }

    /// As [`Self::duplicate`], with the reason.
    pub fn duplicate_with_detail(
        &mut self,
        path: &FieldPath<'_>,
        value: impl Serialize,
        detail: &str,
    ) {
        let head = format!("Duplicate value: {}", json(&value));
        self.add("FieldValueDuplicate", path, &head, detail);
    }

    /// Adds the error that the field may not be set or changed.
    pub fn forbidden(&mut self, path: &FieldPath<'_>, detail: impl Display) {
        self.add("FieldValueForbidden", path, "Forbidden", detail);
    }

    /// Adds the error that the value names something that does not exist.
    pub fn not_found(&mut self, path: &FieldPath<'_>, value: &str) {
        let head = format!("Not found: {}", json(&value));
        self.add("FieldValueNotFound", path, &head, "");
    }

    /// Adds the error that the value is longer than `limit` bytes.
    pub fn too_long(&mut self, path: &FieldPath<'_>, limit: usize) {
        let bytes = if limit == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {limit} {bytes}");
        self.add("FieldValueTooLong", path, "Too long", detail);
    }

    /// Adds an error for each of `details`.
    pub fn all_invalid(&mut self, path: &FieldPath<'_>, value: &str, details: Vec<String>) {
        for detail in details {
            self.invalid(path, value, detail);
        }
    }

    /// Requires a text that is not empty.
    pub fn not_empty(&mut self, path: &FieldPath<'_>, text: &str) {
        if text.is_empty() {
            self.required(path, "");
        }
    }

    /// Requires that `check` finds no errors in the value.
    pub fn check(
        &mut self,
        path: &FieldPath<'_>,
        value: &str,
        check: impl Fn(&str) -> Vec<String>,
    ) {
        self.all_invalid(path, value, check(value));
    }

    /// Requires a domain, a slash and a path (upstream: `IsDomainPrefixedPath`).
    pub fn domain_prefixed_path(&mut self, path: &FieldPath<'_>, text: &str) {
        if text.is_empty() {
            return self.required(path, "");
        }
        let parts = text.split_once('/');
        let Some((host, rest)) = parts.filter(|(host, rest)| !host.is_empty() && !rest.is_empty())
        else {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            return self.invalid(path, text, detail);
        };
        self.check(path, host, names::validate_dns_subdomain);
        let allowed =
            |letter: char| letter.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(letter);
        if !rest.chars().all(allowed) {
            let detail =
                r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')";
            self.invalid(path, rest, detail);
        }
    }

    /// Requires a value that is set and in which `check` finds no errors.
    pub fn check_required(
        &mut self,
        path: &FieldPath<'_>,
        value: &str,
        check: impl Fn(&str) -> Vec<String>,
    ) {
        match value {
            "" => self.required(path, ""),
            value => self.check(path, value, check),
        }
    }

    /// Requires a number that is not negative.
    pub fn non_negative(&mut self, path: &FieldPath<'_>, value: impl Into<i64>) {
        let value = value.into();
        if value < 0 {
            self.invalid(path, value, "must be greater than or equal to 0");
        }
    }

    /// Requires a positive number.
    pub fn positive(&mut self, path: &FieldPath<'_>, value: impl Into<i64>) {
        let value = value.into();
        if value <= 0 {
            self.invalid(path, value, "must be greater than zero");
        }
    }

    /// Requires a list of at most `limit` entries.
    pub fn at_most(&mut self, path: &FieldPath<'_>, count: usize, limit: usize) {
        if count > limit {
            let head = format!("Too many: {count}");
            let items = if limit == 1 { "item" } else { "items" };
            let detail = format!("must have at most {limit} {items}");
            self.add("FieldValueTooMany", path, &head, detail);
        }
    }

    /// Requires one of the supported values, or `None`.
    pub fn one_of<'v>(
        &mut self,
        path: &FieldPath<'_>,
        value: impl Into<Option<&'v str>>,
        supported: &[&str],
    ) {
        if let Some(value) = value.into()
            && !supported.contains(&value)
        {
            self.unsupported(path, value, supported);
        }
    }

    /// Requires one of the supported values, or an empty one.
    pub fn one_of_or_empty(&mut self, path: &FieldPath<'_>, value: &str, supported: &[&str]) {
        self.one_of(
            path,
            Some(value).filter(|value| !value.is_empty()),
            supported,
        );
    }

    /// Requires a value that has not changed.
    pub fn immutable<T: PartialEq + Serialize>(&mut self, path: &FieldPath<'_>, new: &T, old: &T) {
        if new != old {
            self.invalid(path, new, "field is immutable");
        }
    }

    /// Adds the error of a schema.
    pub fn violation(&mut self, violation: &Violation) {
        self.causes.push(StatusCause {
            reason: violation.kind.reason().to_owned(),
            message: violation.body(),
            field: violation.path.clone(),
        });
    }

    /// Adds the error of a schema about a part that the write does not change, which is only a warning.
    pub fn forgive(&mut self, violation: &Violation) {
        self.forgiven.push(violation.to_string());
    }

    /// Takes the warnings about parts that the write does not change.
    pub fn take_forgiven(&mut self) -> Vec<String> {
        mem::take(&mut self.forgiven)
    }

    /// Returns the number of errors.
    pub fn count(&self) -> usize {
        self.causes.len()
    }

    fn add(&mut self, reason: &str, path: &FieldPath<'_>, head: &str, detail: impl Display) {
        let mut message = head.to_owned();
        let detail = detail.to_string();
        if !detail.is_empty() {
            let _ = write!(message, ": {detail}");
        }
        self.causes.push(StatusCause {
            reason: reason.to_owned(),
            message,
            field: path.to_string(),
        });
    }

    /// Returns `Invalid` with all errors of a request, which are not about an object.
    pub fn into_request_error(self) -> ApiError {
        let message = format!(" \"\" is invalid: {self}");
        ApiError::new(Reason::Invalid, message).with_details(StatusDetails {
            causes: self.causes,
            ..Default::default()
        })
    }

    /// Returns `Invalid` with all errors, if there are any.
    pub fn into_result(self, kind: &Kind, name: &str) -> Result<(), ApiError> {
        if self.causes.is_empty() {
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
                causes: self.causes,
                ..Default::default()
            }),
        )
    }
}

impl Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |cause: &StatusCause| format!("{}: {}", cause.field, cause.message);
        match self.causes.as_slice() {
            [one] => f.write_str(&line(one)),
            many => write!(
                f,
                "[{}]",
                many.iter().map(line).collect::<Vec<_>>().join(", ")
            ),
        }
    }
}

/// Returns the kind with its group, for example `Deployment.apps`; the group of `Pod` is empty.
fn qualified(kind: &str, group: &str) -> String {
    match group {
        "" => kind.to_owned(),
        group => format!("{kind}.{group}"),
    }
}

fn json(value: &impl Serialize) -> String {
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
    fn a_single_error_is_the_message_and_a_cause() {
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
    fn several_errors_are_a_list_in_the_message() {
        let mut errors = FieldErrors::default();
        let spec = FieldPath::root("spec");
        errors.required(&spec.field("selector"), "");
        errors.one_of_or_empty(&spec.field("type"), "x", &["A", "B"]);
        assert_eq!(
            error(errors).message,
            concat!(
                r#"Deployment.apps "web" is invalid: [spec.selector: Required value, "#,
                r#"spec.type: Unsupported value: "x": supported values: "A", "B"]"#
            )
        );
    }

    /// Checks U3: the texts are those of upstream's `field.Error`.
    #[test]
    fn each_error_has_its_text() {
        type Add = fn(&mut FieldErrors, &FieldPath<'_>);
        let texts: [(Add, &str, &str); 17] = [
            (|e, at| e.required(at, ""), "Required", "Required value"),
            (
                |e, at| e.required(at, "why"),
                "Required",
                "Required value: why",
            ),
            (
                |e, at| e.invalid(at, "x", "why"),
                "Invalid",
                r#"Invalid value: "x": why"#,
            ),
            (
                |e, at| e.invalid_without_value(at, "why"),
                "Invalid",
                "Invalid value: why",
            ),
            (
                |e, at| e.unsupported(at, "x", &["B", "A"]),
                "NotSupported",
                r#"Unsupported value: "x": supported values: "B", "A""#,
            ),
            (
                |e, at| e.duplicate(at, "x"),
                "Duplicate",
                r#"Duplicate value: "x""#,
            ),
            (
                |e, at| e.duplicate_with_detail(at, 1, "why"),
                "Duplicate",
                "Duplicate value: 1: why",
            ),
            (
                |e, at| e.forbidden(at, "why"),
                "Forbidden",
                "Forbidden: why",
            ),
            (
                |e, at| e.not_found(at, "x"),
                "NotFound",
                r#"Not found: "x""#,
            ),
            (
                |e, at| e.too_long(at, 63),
                "TooLong",
                "Too long: may not be more than 63 bytes",
            ),
            (
                |e, at| e.at_most(at, 3, 2),
                "TooMany",
                "Too many: 3: must have at most 2 items",
            ),
            (
                |e, at| e.check(at, "x", |_| vec!["why".into()]),
                "Invalid",
                r#"Invalid value: "x": why"#,
            ),
            (
                |e, at| e.check_required(at, "", |_| Vec::new()),
                "Required",
                "Required value",
            ),
            (|e, at| e.not_empty(at, ""), "Required", "Required value"),
            (
                |e, at| e.non_negative(at, -1),
                "Invalid",
                "Invalid value: -1: must be greater than or equal to 0",
            ),
            (
                |e, at| e.positive(at, 0),
                "Invalid",
                "Invalid value: 0: must be greater than zero",
            ),
            (
                |e, at| e.immutable(at, &"new", &"old"),
                "Invalid",
                r#"Invalid value: "new": field is immutable"#,
            ),
        ];
        for (add, reason, text) in texts {
            let mut errors = FieldErrors::default();
            add(&mut errors, &FieldPath::root("spec").field("name"));
            let cause = &errors.causes[0];
            assert_eq!(cause.message, text);
            assert_eq!(cause.reason, format!("FieldValue{reason}"));
            assert_eq!(cause.field, "spec.name");
            assert_eq!(errors.to_string(), format!("spec.name: {text}"));
        }
    }

    #[test]
    fn values_that_meet_a_requirement_have_no_error() {
        let mut errors = FieldErrors::default();
        let at = FieldPath::root("spec");
        errors.check_required(&at, "x", |_| Vec::new());
        errors.not_empty(&at, "x");
        errors.non_negative(&at, 0);
        errors.positive(&at, 1);
        errors.at_most(&at, 2, 2);
        errors.one_of(&at, None, &["A"]);
        errors.one_of_or_empty(&at, "", &["A"]);
        errors.immutable(&at, &1, &1);
        assert_eq!(errors.count(), 0);
    }
}
