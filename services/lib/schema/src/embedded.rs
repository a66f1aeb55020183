//! The type and metadata of embedded objects (`x-kubernetes-embedded-resource`).

use serde_json::{Map, Value};
use setpoint_cel::Node;
use setpoint_model::names;

use crate::path::Path;
use crate::violation::Violation;

/// The limit of keys and values of all annotations, in bytes.
const MAX_ANNOTATIONS: usize = 256 << 10;

/// The fields of metadata and what they hold.
const METADATA: &[(&str, Shape)] = &[
    ("name", Shape::Text),
    ("generateName", Shape::Text),
    ("namespace", Shape::Text),
    ("selfLink", Shape::Text),
    ("uid", Shape::Text),
    ("resourceVersion", Shape::Text),
    ("generation", Shape::Integer),
    ("creationTimestamp", Shape::Text),
    ("deletionTimestamp", Shape::Text),
    ("deletionGracePeriodSeconds", Shape::Integer),
    ("labels", Shape::Texts),
    ("annotations", Shape::Texts),
    ("ownerReferences", Shape::List),
    ("finalizers", Shape::List),
    ("managedFields", Shape::List),
];

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Text,
    Integer,
    Texts,
    List,
}

/// Whether objects have the field in their metadata.
pub(crate) fn is_metadata_field(name: &str) -> bool {
    METADATA.iter().any(|(known, _)| *known == name)
}

/// Checks all embedded objects of a value.
pub(crate) fn check(node: &Node, value: &Value, path: &Path<'_>, found: &mut Vec<Violation>) {
    match value {
        Value::Object(fields) => {
            if node.embedded_resource {
                resource(fields, path, found);
            }
            for (name, value) in fields {
                match (node.properties.get(name), node.values()) {
                    (Some(node), _) => check(node, value, &path.field(name), found),
                    (None, Some(node)) => check(node, value, &path.key(name), found),
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            let node = node.items.as_deref();
            for (index, item) in items.iter().enumerate() {
                if let Some(node) = node {
                    check(node, item, &path.index(index), found);
                }
            }
        }
        _ => {}
    }
}

/// Checks one object: type and metadata.
pub(crate) fn resource(fields: &Map<String, Value>, path: &Path<'_>, found: &mut Vec<Violation>) {
    api_version(fields.get("apiVersion"), &path.field("apiVersion"), found);
    kind(fields.get("kind"), &path.field("kind"), found);
    if let Some(metadata) = fields.get("metadata") {
        self::metadata(metadata, &path.field("metadata"), found);
    }
}

fn api_version(value: Option<&Value>, path: &Path<'_>, found: &mut Vec<Violation>) {
    let Some(text) = filled(value, path, found) else {
        return;
    };
    if text.matches('/').count() > 1 {
        let detail = format!("unexpected GroupVersion string: {text}");
        found.push(Violation::invalid(path, text, detail));
    }
}

fn kind(value: Option<&Value>, path: &Path<'_>, found: &mut Vec<Violation>) {
    let Some(text) = filled(value, path, found) else {
        return;
    };
    let problems = names::validate_dns1035_label(&text.to_lowercase());
    if !problems.is_empty() {
        let problems = problems.join(",");
        let detail = format!("may have mixed case, but should otherwise match: {problems}");
        found.push(Violation::invalid(path, text, detail));
    }
}

/// Returns a string that must be there and not be empty.
fn filled<'a>(
    value: Option<&'a Value>,
    path: &Path<'_>,
    found: &mut Vec<Violation>,
) -> Option<&'a str> {
    let problem = match value {
        None => Violation::required(path, ""),
        Some(Value::String(text)) if text.is_empty() => {
            Violation::invalid(path, "", "must not be empty")
        }
        Some(Value::String(text)) => return Some(text),
        Some(other) => Violation::invalid(path, other.clone(), "must be a string"),
    };
    found.push(problem);
    None
}

fn metadata(value: &Value, path: &Path<'_>, found: &mut Vec<Violation>) {
    if let Err(error) = decodes(value) {
        return found.push(Violation::invalid(path, value.clone(), error));
    }
    let Some(fields) = value.as_object() else {
        return;
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    for name in ["generateName", "name"] {
        problems(
            names::validate_path_segment(text(name)),
            text(name),
            &path.field(name),
            found,
        );
    }
    let namespace = text("namespace");
    if !namespace.is_empty() {
        problems(
            names::validate_dns_label(namespace),
            namespace,
            &path.field("namespace"),
            found,
        );
    }
    if let Some(generation) = fields
        .get("generation")
        .and_then(Value::as_i64)
        .filter(|number| *number < 0)
    {
        let detail = "must be greater than or equal to 0";
        found.push(Violation::invalid(
            &path.field("generation"),
            generation,
            detail,
        ));
    }
    labels(fields.get("labels"), &path.field("labels"), found);
    annotations(fields.get("annotations"), &path.field("annotations"), found);
    owners(
        fields.get("ownerReferences"),
        &path.field("ownerReferences"),
        found,
    );
    finalizers(fields.get("finalizers"), &path.field("finalizers"), found);
}

fn problems(details: Vec<String>, value: &str, path: &Path<'_>, found: &mut Vec<Violation>) {
    let violations = details
        .into_iter()
        .map(|detail| Violation::invalid(path, value, detail));
    found.extend(violations);
}

fn labels(value: Option<&Value>, path: &Path<'_>, found: &mut Vec<Violation>) {
    for (key, value) in value.and_then(Value::as_object).into_iter().flatten() {
        problems(names::validate_label_key(key), key, path, found);
        let value = value.as_str().unwrap_or_default();
        problems(
            names::validate_label_value(value),
            value,
            &path.key(key),
            found,
        );
    }
}

fn annotations(value: Option<&Value>, path: &Path<'_>, found: &mut Vec<Violation>) {
    let mut size = 0;
    for (key, value) in value.and_then(Value::as_object).into_iter().flatten() {
        size += key.len() + value.as_str().map_or(0, str::len);
        problems(
            names::validate_qualified_name(&key.to_lowercase()),
            key,
            path,
            found,
        );
    }
    if size > MAX_ANNOTATIONS {
        found.push(Violation::too_long(path, MAX_ANNOTATIONS as i64));
    }
}

fn owners(value: Option<&Value>, path: &Path<'_>, found: &mut Vec<Violation>) {
    for (index, owner) in value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
    {
        let path = path.index(index);
        for name in ["apiVersion", "kind", "name", "uid"] {
            if owner
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .is_empty()
            {
                let detail = match name {
                    "apiVersion" => "version must not be empty",
                    _ => "must not be empty",
                };
                found.push(Violation::invalid(&path.field(name), "", detail));
            }
        }
    }
}

fn finalizers(value: Option<&Value>, path: &Path<'_>, found: &mut Vec<Violation>) {
    for finalizer in value.and_then(Value::as_array).into_iter().flatten() {
        let finalizer = finalizer.as_str().unwrap_or_default();
        problems(
            names::validate_qualified_name(finalizer),
            finalizer,
            path,
            found,
        );
    }
}

/// Checks the types of the fields of metadata; the error is that of Go's decoder.
pub(crate) fn decodes(metadata: &Value) -> Result<(), String> {
    let fields = match metadata {
        Value::Null => return Ok(()),
        Value::Object(fields) => fields,
        other => {
            let kind = kind_of(other);
            return Err(format!(
                "json: cannot unmarshal {kind} into Go value of type v1.ObjectMeta"
            ));
        }
    };
    for (name, shape) in METADATA {
        if let Some(value) = fields.get(*name) {
            shape.decodes(value, name)?;
        }
    }
    Ok(())
}

impl Shape {
    fn decodes(self, value: &Value, name: &str) -> Result<(), String> {
        let fails = |value: &Value, go: &str| {
            let kind = kind_of(value);
            Err(format!(
                "json: cannot unmarshal {kind} into Go struct field ObjectMeta.{name} of type {go}"
            ))
        };
        match (self, value) {
            (_, Value::Null) | (Shape::Text, Value::String(_)) | (Shape::List, Value::Array(_)) => {
                Ok(())
            }
            (Shape::Integer, Value::Number(number)) if number.is_i64() => Ok(()),
            (Shape::Texts, Value::Object(texts)) => {
                let wrong = texts
                    .values()
                    .find(|text| !text.is_string() && !text.is_null());
                wrong.map_or(Ok(()), |wrong| fails(wrong, "string"))
            }
            (Shape::Text, other) => fails(other, "string"),
            (Shape::Integer, other) => fails(other, "int64"),
            (Shape::Texts, other) => fails(other, "map[string]string"),
            (Shape::List, other) => fails(other, "[]interface {}"),
        }
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
