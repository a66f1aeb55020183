//! The columns of the tables of custom objects, and the simple JSON paths in definitions.

use setpoint_proto::apiextensions::CustomResourceColumnDefinition;

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

/// Validates a column.
pub(super) fn validate(
    column: &CustomResourceColumnDefinition,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    errors.not_empty(&path.field("name"), &column.name);
    let (at, one_of) = (
        path.field("type"),
        format!("must be one of {}", TYPES.join(",")),
    );
    match column.r#type.as_str() {
        "" => errors.required(&at, &one_of),
        other if !TYPES.contains(&other) => errors.invalid(&at, other, one_of),
        _ => {}
    }
    let format = column.format.as_str();
    if !format.is_empty() && !FORMATS.contains(&format) {
        let detail = format!("must be one of {}", FORMATS.join(","));
        errors.invalid(&path.field("format"), format, detail);
    }
    let at = path.field("JSONPath");
    match column.json_path.as_str() {
        "" => errors.required(&at, ""),
        text => {
            validate_path(text, &at, errors);
        }
    }
}

/// Requires a path that begins with a dot. Returns whether it does.
pub(super) fn validate_path(text: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) -> bool {
    let is_valid = text.starts_with('.');
    if !is_valid {
        let detail = "must be a simple json path starting with .";
        errors.invalid(path, text, detail);
    }
    is_valid
}
