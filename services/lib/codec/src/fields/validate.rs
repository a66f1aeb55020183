//! The check of an applied configuration against the rules of its fields.

mod custom;

use std::collections::BTreeSet;

use prost_reflect::Kind as Type;
use serde_json::{Map, Value};

use super::shape::{Shape, Structure};
use crate::Kind;
use crate::rules::{Field, Message};

/// The maximum number of reported problems.
const MAX_PROBLEMS: usize = 100;

/// Messages that may be any value in JSON, and that are owned as a whole.
const ANY_JSON: [&str; 6] = [
    "FieldsV1",
    "JSON",
    "JSONSchemaPropsOrArray",
    "JSONSchemaPropsOrBool",
    "JSONSchemaPropsOrStringArray",
    "RawExtension",
];

/// Checks that a configuration has only known fields, values of their types, and lists without duplicate keys.
///
/// # Errors
/// All problems, in the wording of Kubernetes.
pub fn validate(kind: &Kind, config: &Value) -> Result<(), String> {
    let mut problems = Vec::new();
    match Structure::of(kind).shape() {
        Shape::Struct(message) => structure(message, config, "", &mut problems),
        Shape::Resource(node) => custom::resource(node, config, "", &mut problems),
        _ => {}
    }
    problems.truncate(MAX_PROBLEMS);
    match problems.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

fn report(path: &str, problem: &str, problems: &mut Vec<String>) {
    if problems.len() < MAX_PROBLEMS {
        problems.push(match path {
            "" => problem.to_owned(),
            path => format!("{path}: {problem}"),
        });
    }
}

/// Returns the fields of a value that must be an object, or reports it.
fn object<'v>(
    value: &'v Value,
    path: &str,
    problems: &mut Vec<String>,
) -> Option<&'v Map<String, Value>> {
    if !value.is_object() && !value.is_null() {
        let problem = format!("expected map, got {}", shown(value));
        report(path, &problem, problems);
    }
    value.as_object()
}

fn structure(message: &'static Message, value: &Value, path: &str, problems: &mut Vec<String>) {
    let shape = Shape::Struct(message);
    for (name, value) in object(value, path, problems).into_iter().flatten() {
        let path = format!("{path}.{name}");
        match message.field(name) {
            Some(declared) => field(declared, value, &path, problems),
            None if shape.child(name).is_some() => string(value, &path, problems),
            None => report(&path, "field not declared in schema", problems),
        }
    }
}

fn field(field: &'static Field, value: &Value, path: &str, problems: &mut Vec<String>) {
    if field.descriptor.is_list() {
        return list(field, value, path, problems);
    }
    if !field.descriptor.is_map() {
        return element(field, value, path, problems);
    }
    for (key, value) in object(value, path, problems).into_iter().flatten() {
        element(field, value, &format!("{path}.{key}"), problems);
    }
}

fn list(field: &'static Field, value: &Value, path: &str, problems: &mut Vec<String>) {
    let Some(entries) = entries_of(value, path, problems) else {
        return;
    };
    let check = |entry: &Value, path: &str, problems: &mut Vec<String>| {
        element(field, entry, path, problems);
    };
    identified(field.shapes().whole, entries, path, problems, check);
}

/// Returns the entries of a value that must be a list, or reports it.
fn entries_of<'v>(
    value: &'v Value,
    path: &str,
    problems: &mut Vec<String>,
) -> Option<&'v Vec<Value>> {
    if !value.is_array() && !value.is_null() {
        let problem = format!("expected list, got {}", shown(value));
        report(path, &problem, problems);
    }
    value.as_array()
}

/// Checks the entries of a list, and that those with identities are different.
fn identified(
    shape: Shape<'_>,
    entries: &[Value],
    path: &str,
    problems: &mut Vec<String>,
    check: impl Fn(&Value, &str, &mut Vec<String>),
) {
    let is_leaf = matches!(shape, Shape::Leaf);
    let mut seen = BTreeSet::new();
    for (at, entry) in entries.iter().enumerate() {
        if is_leaf {
            check(entry, &format!("{path}[{at}]"), problems);
            continue;
        }
        let found = match shape.entry(entry) {
            Ok(found) => found,
            Err(problem) => return report(path, &format!("element {at}: {problem}"), problems),
        };
        check(entry, &format!("{path}{found}"), problems);
        if seen.contains(&found) {
            let problem = format!("duplicate entries for key {found}");
            report(path, &problem, problems);
        }
        seen.insert(found);
    }
}

/// Checks a single value, or an entry of a list or map.
fn element(field: &'static Field, value: &Value, path: &str, problems: &mut Vec<String>) {
    if let Some(message) = field.message() {
        return structure(message, value, path, problems);
    }
    let expected = match &field.element {
        _ if value.is_null() => return,
        Type::Bool if !value.is_boolean() => format!("expected boolean, got {}", shown(value)),
        Type::String | Type::Bytes => return string(value, path, problems),
        Type::Message(of) => match of.name() {
            of if ANY_JSON.contains(&of) => return,
            _ if value.is_object() || value.is_array() => {
                format!("expected any scalar, got {}", shown(value))
            }
            _ => return,
        },
        Type::Bool => return,
        Type::Enum(_) => return string(value, path, problems),
        _ if value.is_number() => return,
        _ => format!("expected numeric (int or float), got {}", type_name(value)),
    };
    report(path, &expected, problems);
}

fn string(value: &Value, path: &str, problems: &mut Vec<String>) {
    if !value.is_string() && !value.is_null() {
        let shown = match value {
            Value::Object(_) | Value::Array(_) => value.to_string(),
            scalar => format!("&value.valueUnstructured{{Value:{scalar}}}"),
        };
        let problem = format!("expected string, got {shown}");
        report(path, &problem, problems);
    }
}

/// Returns a value as upstream shows it in errors.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("&{{{text}}}"),
        other => format!("&{{{other}}}"),
    }
}

const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        Value::Null => "nil",
        Value::Number(_) => "int64",
    }
}
