//! Schemas as JSON, and the schemas of values within them.

use serde_json::{Map, Value};

pub(super) const PRESERVE_UNKNOWN_FIELDS: &str = "x-kubernetes-preserve-unknown-fields";

/// Calls `change` with a schema, and then with those of its fields, items and map values. The alternatives of a value
/// are not visited: only its own schema has extensions.
pub(super) fn visit(
    schema: &mut Map<String, Value>,
    change: &mut impl FnMut(&mut Map<String, Value>),
) {
    change(schema);
    for name in ["items", "additionalProperties"] {
        if let Some(Value::Object(inner)) = schema.get_mut(name) {
            visit(inner, change);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut() {
            if let Value::Object(property) = property {
                visit(property, change);
            }
        }
    }
}

/// Returns the properties of a schema, to which others can be added.
pub(super) fn properties(schema: &mut Map<String, Value>) -> &mut Map<String, Value> {
    let properties = schema.entry("properties").or_insert(Value::Null);
    if !properties.is_object() {
        *properties = Map::new().into();
    }
    properties.as_object_mut().expect("it was made an object")
}

/// Returns whether a keyword of a schema is true.
pub(super) fn is_true(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool) == Some(true)
}

pub(super) fn preserves_unknown_fields(schema: &Map<String, Value>) -> bool {
    is_true(schema, PRESERVE_UNKNOWN_FIELDS)
}
