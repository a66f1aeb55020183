//! Features of schemas that v2 lacks, or that its clients misread. They are removed as upstream does.

use serde_json::{Map, Value};

use super::node;

/// Removes the features from a schema. Those of its parts stay.
pub(super) fn remove(schema: &mut Map<String, Value>) {
    for alternatives in ["allOf", "anyOf", "oneOf", "not"] {
        schema.remove(alternatives);
    }
    remove_nullable(schema);
    if node::preserves_unknown_fields(schema) {
        // Clients refuse fields that are not among the properties.
        schema.remove("items");
        schema.remove("properties");
        remove_type(schema, "object");
    }
    // kubectl fails on a list without a schema of its items.
    if !schema.contains_key("items") {
        remove_type(schema, "array");
    }
    allow_null_fields(schema);
}

/// Turns a value that may be null into one of any type.
fn remove_nullable(schema: &mut Map<String, Value>) {
    if is_nullable(schema) {
        for name in ["nullable", "type", "items", "properties"] {
            schema.remove(name);
        }
    }
}

fn remove_type(schema: &mut Map<String, Value>, name: &str) {
    if schema.get("type").is_some_and(|of| of == name) {
        schema.remove("type");
    }
}

/// Removes fields that may be null from the required ones: clients take null for a field that is missing.
fn allow_null_fields(schema: &mut Map<String, Value>) {
    let nullable = |of: &Value| of.as_object().is_some_and(is_nullable);
    let properties = schema.get("properties").and_then(Value::as_object);
    let fields = properties.into_iter().flatten();
    let fields = fields.filter(|(_, of)| nullable(of));
    let fields: Vec<String> = fields.map(|(name, _)| name.clone()).collect();
    let any = schema.get("additionalProperties").is_some_and(nullable);
    let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) else {
        return;
    };
    required.retain(|name| !any && fields.iter().all(|field| name != field));
    if required.is_empty() {
        schema.remove("required");
    }
}

fn is_nullable(schema: &Map<String, Value>) -> bool {
    node::is_true(schema, "nullable")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pruned(schema: Value) -> Value {
        let Value::Object(mut schema) = schema else {
            unreachable!("schemas are objects")
        };
        node::visit(&mut schema, &mut remove);
        schema.into()
    }

    #[test]
    fn v2_has_no_alternatives() {
        let schema = json!({
            "type": "object",
            "oneOf": [{ "required": ["a"] }],
            "properties": { "a": {
                "type": "string",
                "allOf": [{ "minLength": 1 }],
                "anyOf": [{ "pattern": "a" }],
                "not": { "enum": ["b"] },
                "maxLength": 5,
            } },
        });
        let expected = json!({
            "type": "object",
            "properties": { "a": { "type": "string", "maxLength": 5 } },
        });
        assert_eq!(pruned(schema), expected);
    }

    #[test]
    fn a_value_that_may_be_null_has_any_type_and_is_not_required() {
        let schema = json!({
            "type": "object",
            "required": ["a", "b"],
            "properties": {
                "a": { "type": "object", "nullable": true, "properties": { "x": { "type": "string" } } },
                "b": { "type": "string" },
            },
        });
        let expected = json!({
            "type": "object",
            "required": ["b"],
            "properties": { "a": {}, "b": { "type": "string" } },
        });
        assert_eq!(pruned(schema), expected);
    }

    #[test]
    fn a_map_of_nulls_requires_no_field() {
        let schema = json!({
            "type": "object",
            "required": ["a"],
            "additionalProperties": { "type": "string", "nullable": true },
        });
        let expected = json!({ "type": "object", "additionalProperties": {} });
        assert_eq!(pruned(schema), expected);
    }

    #[test]
    fn a_value_with_unknown_fields_has_no_properties() {
        let unknown = node::PRESERVE_UNKNOWN_FIELDS;
        let schema = json!({ "type": "object", "properties": {
            "a": { "type": "object", unknown: true, "properties": { "x": { "type": "string" } } },
            "b": { "type": "array", unknown: true, "items": { "type": "string" } },
        } });
        let expected = json!({ "type": "object", "properties": {
            "a": { unknown: true },
            "b": { unknown: true },
        } });
        assert_eq!(pruned(schema), expected);
    }
}
