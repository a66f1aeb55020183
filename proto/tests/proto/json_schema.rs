//! The forms of the parts of a JSON schema.

use std::thread;

use prost::Message as _;
use serde_json::{Value, json};

use setpoint_proto::apiextensions::JsonSchemaProps;

/// The stack of a thread of tokio.
const STACK: usize = 2 << 20;

fn read(schema: &Value) -> JsonSchemaProps {
    serde_json::from_value(schema.clone()).unwrap()
}

/// Returns the JSON of a schema that was encoded as JSON, protobuf and JSON.
fn round_trip(schema: &Value) -> String {
    let encoded = read(schema).encode_to_vec();
    let decoded = JsonSchemaProps::decode(&*encoded).unwrap();
    serde_json::to_string(&decoded).unwrap()
}

#[test]
fn a_schema_round_trips_through_json_and_protobuf() {
    for schema in [
        json!({ "default": false }),
        json!({ "default": 0 }),
        json!({ "default": "" }),
        json!({ "default": {} }),
        json!({ "default": [] }),
        json!({ "default": { "a": [null, 1.5, 18_446_744_073_709_551_615_u64] } }),
        json!({ "enum": [null, 0, "", false, { "a": null }] }),
        json!({ "example": "x" }),
        json!({ "additionalProperties": false }),
        json!({ "additionalProperties": true }),
        json!({ "additionalProperties": {} }),
        json!({ "additionalProperties": { "type": "string" } }),
        json!({ "additionalItems": true }),
        json!({ "items": {} }),
        json!({ "items": { "type": "string" } }),
        json!({ "items": [{ "type": "string" }, {}] }),
        json!({ "dependencies": { "a": ["b", ""], "c": { "type": "string" } } }),
        json!({ "maximum": 0, "minimum": -5, "multipleOf": 100 }),
        json!({ "maximum": 0.5, "minimum": -9_007_199_254_740_993_i64, "multipleOf": 1e-9 }),
        json!({ "maxLength": 0, "minItems": 0, "maxProperties": 9_223_372_036_854_775_807_i64 }),
        json!({ "$ref": "#/x", "$schema": "http://json-schema.org/schema#", "id": "i" }),
        json!({ "not": { "not": {} }, "allOf": [{}, { "type": "object" }] }),
        json!({ "properties": { "a": {}, "b": { "nullable": true } } }),
        json!({ "x-kubernetes-preserve-unknown-fields": false }),
        json!({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"] }),
        json!({ "x-kubernetes-map-type": "atomic", "x-kubernetes-int-or-string": true }),
        json!({ "x-kubernetes-validations": [{ "rule": "self.a", "optionalOldSelf": false }] }),
    ] {
        let rounded = match &schema {
            // The nearest number that a double can have.
            one if one["minimum"] == -9_007_199_254_740_993_i64 => {
                schema.to_string().replace("993", "992")
            }
            one => one.to_string(),
        };
        let found: Value = serde_json::from_str(&round_trip(&schema)).unwrap();
        assert_eq!(found.to_string(), rounded);
    }
}

#[test]
fn null_is_an_unset_field() {
    let nulls = json!({ "default": null, "enum": null, "items": null, "additionalProperties": null, "maximum": null });
    assert_eq!(read(&nulls), JsonSchemaProps::default());
    assert_eq!(round_trip(&nulls), "{}");
}

#[test]
fn another_form_is_an_error() {
    for (schema, expected) in [
        (
            r#"{"additionalProperties":[]}"#,
            "boolean or JSON schema expected",
        ),
        (
            r#"{"items":true}"#,
            "JSON schema or array of JSON schemas expected",
        ),
        (
            r#"{"items":"a"}"#,
            "expected JSON schema or array of JSON schemas",
        ),
        (r#"{"items":[["a"]]}"#, "expected an object"),
        (
            r#"{"dependencies":{"a":true}}"#,
            "JSON schema or array of strings expected",
        ),
    ] {
        let error = serde_json::from_str::<JsonSchemaProps>(schema).unwrap_err();
        assert!(error.to_string().contains(expected), "{schema}: {error}");
    }
}

/// Nested as deep as serde_json reads, in the form that has most schemas, then one deeper.
#[test]
fn deeply_nested_json_does_not_overflow_the_stack() {
    let nested =
        |field: &str, close: &str, depth: usize| field.repeat(depth) + "{}" + &close.repeat(depth);
    let read = move || {
        for field in [
            r#"{"not":"#,
            r#"{"items":"#,
            r#"{"additionalProperties":"#,
            r#"{"default":"#,
        ] {
            let deepest = nested(field, "}", 126);
            let schema: JsonSchemaProps = serde_json::from_str(&deepest).unwrap();
            let copy = serde_json::to_string(&schema.clone()).unwrap();
            assert_eq!(copy, deepest);
            let deeper = nested(field, "}", 128);
            let error = serde_json::from_str::<JsonSchemaProps>(&deeper).unwrap_err();
            assert!(
                error.to_string().starts_with("recursion limit exceeded"),
                "{error}"
            );
        }
    };
    let thread = thread::Builder::new().stack_size(STACK).spawn(read);
    thread.unwrap().join().unwrap();
}

#[test]
fn deeply_nested_protobuf_is_an_error() {
    let nested = |depth: usize| {
        let mut schema = JsonSchemaProps::default();
        for _ in 0..depth {
            let not = Some(Box::new(std::mem::take(&mut schema)));
            schema.not = not;
        }
        schema.encode_to_vec()
    };
    assert!(JsonSchemaProps::decode(&*nested(100)).is_ok());
    assert!(JsonSchemaProps::decode(&*nested(200)).is_err());
}
