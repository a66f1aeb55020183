//! The error of a patch after which a value has the wrong type, in upstream's words: those of its converter for
//! strategic merge patches, those of Go's JSON decoder for others.

use prost_reflect::Kind as Scalar;
use serde_json::Value;
use setpoint_codec::rules::{self, Field, Message};
use setpoint_codec::{Error, Kind};
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;
use setpoint_proto::ApiError;
use setpoint_proto::setpoint::patch_request::Type;

use super::Patch;

/// Returns the error of a patched document that could not be decoded as an object of `kind`.
pub(super) fn error(patch: &Patch, kind: &Kind, patched: &Value, error: Error) -> ApiError {
    let problem = match error {
        Error::Json { problem, .. } => problem,
        malformed @ Error::Malformed { .. } => return malformed.into(),
    };
    let (value, problem) = match patch.r#type {
        Type::Strategic => (
            in_go(&patch.body),
            conversion(kind, patched).unwrap_or(problem),
        ),
        _ => (patched.to_string(), problem),
    };
    let mut errors = FieldErrors::default();
    errors.invalid(&FieldPath::root("patch"), value, problem);
    errors.into_request_error()
}

/// Returns the first problem of a conversion; `None` if it is one of a type with a format of its own, such as a time.
fn conversion(kind: &Kind, document: &Value) -> Option<String> {
    in_message(rules::message(kind.message.full_name())?, document)
}

fn in_message(message: &'static Message, value: &Value) -> Option<String> {
    let Value::Object(object) = value else {
        return Some(format!("cannot restore struct from: {}", go_kind(value)));
    };
    message.fields().find_map(|field| {
        let value = object.get(field.descriptor.json_name())?;
        in_field(field, value)
    })
}

fn in_field(field: &'static Field, value: &Value) -> Option<String> {
    let (is_list, is_map) = (field.descriptor.is_list(), field.descriptor.is_map());
    match value {
        Value::Null => None,
        Value::Array(items) if is_list => items.iter().find_map(|item| in_element(field, item)),
        Value::Object(map) if is_map => map.values().find_map(|item| in_element(field, item)),
        _ if is_list => Some(format!("cannot restore slice from {}", go_kind(value))),
        _ if is_map => Some(format!("cannot restore map from {}", go_kind(value))),
        _ => in_element(field, value),
    }
}

fn in_element(field: &'static Field, value: &Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    if let Some(message) = field.message() {
        return in_message(message, value);
    }
    let wanted = match field.element {
        Scalar::Bool => "bool",
        Scalar::String => "string",
        Scalar::Int32 => "int32",
        Scalar::Int64 => "int64",
        Scalar::Float => "float32",
        Scalar::Double => "float64",
        Scalar::Bytes if !value.is_string() => {
            return Some(format!("cannot restore slice from {}", go_kind(value)));
        }
        _ => return None,
    };
    let found = go_kind(value);
    let is_number = |kind: &str| kind.starts_with("int") || kind.starts_with("float");
    match (found, wanted) {
        _ if found == wanted => None,
        // Go converts an integer to a text of that character, and a number to another if it is whole; the converter
        // does not.
        ("int64", "string") => Some("cannot convert int64 to string".to_owned()),
        ("float64", "int32" | "int64")
            if value.as_f64().is_some_and(|number| number.fract() != 0.0) =>
        {
            Some(format!("cannot convert float64 to {wanted}"))
        }
        _ if is_number(found) && is_number(wanted) => None,
        _ => Some(format!("unrecognized type: {wanted}")),
    }
}

/// Returns the kind that Go's reflection has for a JSON value.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

/// Returns a JSON value as Go prints it by `%+v`.
fn in_go(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(" ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", joined(items.iter().map(in_go).collect())),
        Value::Object(object) => {
            let entries = object.iter();
            let entries = entries.map(|(key, value)| format!("{key}:{}", in_go(value)));
            format!("map[{}]", joined(entries.collect()))
        }
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use setpoint_codec::kinds;

    use super::*;

    fn problem(document: &Value) -> Option<String> {
        conversion(kinds().by_resource("pods").unwrap(), document)
    }

    /// Checks T3: the texts of upstream's converter.
    #[test]
    fn a_value_of_the_wrong_type_has_the_text_of_the_converter() {
        for (document, expected) in [
            (
                json!({"metadata": {"labels": "x"}}),
                "cannot restore map from string",
            ),
            (
                json!({"metadata": {"labels": {"a": ["b"]}}}),
                "unrecognized type: string",
            ),
            (
                json!({"metadata": {"labels": {"a": 1}}}),
                "cannot convert int64 to string",
            ),
            (
                json!({"metadata": {"labels": {"a": 1.5}}}),
                "unrecognized type: string",
            ),
            (
                json!({"spec": {"containers": "x"}}),
                "cannot restore slice from string",
            ),
            (
                json!({"spec": {"containers": {}}}),
                "cannot restore slice from map",
            ),
            (
                json!({"spec": {"containers": [true]}}),
                "cannot restore struct from: bool",
            ),
            (json!({"spec": "x"}), "cannot restore struct from: string"),
            (
                json!({"spec": {"activeDeadlineSeconds": "x"}}),
                "unrecognized type: int64",
            ),
            (
                json!({"spec": {"activeDeadlineSeconds": 1.5}}),
                "cannot convert float64 to int64",
            ),
            (
                json!({"spec": {"hostNetwork": "true"}}),
                "unrecognized type: bool",
            ),
        ] {
            assert_eq!(problem(&document).as_deref(), Some(expected), "{document}");
        }
        let own_format =
            json!({"metadata": {"creationTimestamp": 7}, "spec": {"activeDeadlineSeconds": 5}});
        assert_eq!(problem(&own_format), None);
    }

    #[test]
    fn values_are_printed_as_in_go() {
        let patch = json!({"metadata": {"labels": "x", "a": [1, 2.5, null, true, "y z"]}});
        assert_eq!(
            in_go(&patch),
            "map[metadata:map[a:[1 2.5 <nil> true y z] labels:x]]"
        );
    }
}
