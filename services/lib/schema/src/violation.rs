//! An error of a field.

use std::fmt;

use serde_json::Value;
use setpoint_cel::go;

use crate::path::Path;

/// The path of an error that belongs to no field, as upstream prints it.
const NO_PATH: &str = "<nil>";

/// The kind of an error: upstream's `field.ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A value is missing.
    Required,
    /// A value occurs more than once.
    Duplicate,
    /// A value is malformed.
    Invalid,
    /// A value is of the wrong type.
    TypeInvalid,
    /// A value is not among those that are allowed.
    NotSupported,
    /// A value may not be set here.
    Forbidden,
    /// A string is too long.
    TooLong,
    /// A list or map has too many items.
    TooMany,
    /// The check itself failed.
    Internal,
}

impl Kind {
    /// The reason of a cause in the details of a Status.
    pub fn reason(self) -> &'static str {
        match self {
            Kind::Required => "FieldValueRequired",
            Kind::Duplicate => "FieldValueDuplicate",
            Kind::Invalid => "FieldValueInvalid",
            Kind::TypeInvalid => "FieldValueTypeInvalid",
            Kind::NotSupported => "FieldValueNotSupported",
            Kind::Forbidden => "FieldValueForbidden",
            Kind::TooLong => "FieldValueTooLong",
            Kind::TooMany => "FieldValueTooMany",
            Kind::Internal => "InternalError",
        }
    }

    /// The words that begin the message.
    pub fn words(self) -> &'static str {
        match self {
            Kind::Required => "Required value",
            Kind::Duplicate => "Duplicate value",
            Kind::Invalid | Kind::TypeInvalid => "Invalid value",
            Kind::NotSupported => "Unsupported value",
            Kind::Forbidden => "Forbidden",
            Kind::TooLong => "Too long",
            Kind::TooMany => "Too many",
            Kind::Internal => "Internal error",
        }
    }
}

/// An error of one field, in upstream's words. `Display` is upstream's whole line: `path: kind: value: detail`.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The kind of the error.
    pub kind: Kind,
    /// The path of the field: `spec.ports[0].name`, `spec.labels[key]`. `<nil>` if the error belongs to no field.
    pub path: String,
    /// The value that the message shows, if it shows one.
    pub value: Option<Value>,
    /// The explanation; may be empty.
    pub detail: String,
}

impl Violation {
    pub(crate) fn new(
        kind: Kind,
        path: &Path<'_>,
        value: Option<Value>,
        detail: impl Into<String>,
    ) -> Self {
        let path = path.to_string();
        Self {
            kind,
            path: if path.is_empty() {
                NO_PATH.into()
            } else {
                path
            },
            value,
            detail: detail.into(),
        }
    }

    pub(crate) fn required(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(Kind::Required, path, None, detail)
    }

    pub(crate) fn forbidden(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(Kind::Forbidden, path, None, detail)
    }

    pub(crate) fn invalid(
        path: &Path<'_>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(Kind::Invalid, path, Some(value.into()), detail)
    }

    pub(crate) fn duplicate(path: &Path<'_>, value: impl Into<Value>) -> Self {
        Self::new(Kind::Duplicate, path, Some(value.into()), "")
    }

    pub(crate) fn not_supported(path: &Path<'_>, value: Value, supported: &[String]) -> Self {
        let quoted: Vec<_> = supported.iter().map(|text| go::quote(text)).collect();
        let detail = match quoted.is_empty() {
            true => String::new(),
            false => format!("supported values: {}", quoted.join(", ")),
        };
        Self::new(Kind::NotSupported, path, Some(value), detail)
    }

    pub(crate) fn too_long(path: &Path<'_>, max: i64) -> Self {
        let unit = if max == 1 { "byte" } else { "bytes" };
        let detail = match max < 0 {
            true => "value is too long".to_owned(),
            false => format!("may not be more than {max} {unit}"),
        };
        Self::new(Kind::TooLong, path, None, detail)
    }

    pub(crate) fn too_many(path: &Path<'_>, actual: usize, max: i64) -> Self {
        let unit = if max == 1 { "item" } else { "items" };
        let detail = match max < 0 {
            true => "has too many items".to_owned(),
            false => format!("must have at most {max} {unit}"),
        };
        Self::new(Kind::TooMany, path, Some(actual.into()), detail)
    }

    /// The message without the path: `Invalid value: 5: must be less than 3`.
    pub fn body(&self) -> String {
        let mut text = self.kind.words().to_owned();
        if let Some(value) = &self.value {
            text.push_str(": ");
            text.push_str(&go::show(value));
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path, self.body())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Path, Violation};

    #[test]
    fn messages_are_those_of_upstream() {
        let spec = Path::ROOT.field("spec");
        let x = spec.field("x");
        let cases = [
            (Violation::required(&x, ""), "spec.x: Required value"),
            (
                Violation::not_supported(&x, json!("x"), &["a".into(), "b".into()]),
                r#"spec.x: Unsupported value: "x": supported values: "a", "b""#,
            ),
            (
                Violation::too_many(&x, 3, 1),
                "spec.x: Too many: 3: must have at most 1 item",
            ),
            (
                Violation::too_long(&x, 5),
                "spec.x: Too long: may not be more than 5 bytes",
            ),
            (
                Violation::duplicate(&x, json!({"name": "a"})),
                r#"spec.x: Duplicate value: {"name":"a"}"#,
            ),
            (
                Violation::invalid(&Path::ROOT, json!(1.5), "no"),
                "<nil>: Invalid value: 1.5: no",
            ),
        ];
        for (violation, text) in cases {
            assert_eq!(violation.to_string(), text);
        }
    }
}
