use serde_json::{Value, json};

use crate::compile;

#[test]
fn missing_fields_get_their_defaults() {
    let cases: Vec<(Value, Value, Value)> = vec![
        (
            json!({"properties": {"a": {"type": "string", "default": "A"}}}),
            json!({}),
            json!({"a": "A"}),
        ),
        (
            json!({"properties": {"a": {"type": "string", "default": "A"}}}),
            json!({"a": null}),
            json!({"a": "A"}),
        ),
        (
            json!({"properties": {"a": {"type": "string", "nullable": true, "default": "A"}}}),
            json!({"a": null}),
            json!({"a": null}),
        ),
        (
            json!({"properties": {"a": {"type": "string"}}}),
            json!({"a": null}),
            json!({}),
        ),
        (
            json!({"properties": {"a": {"type": "object", "default": {}, "properties": {"b": {"type": "integer", "default": 1}}}}}),
            json!({}),
            json!({"a": {"b": 1}}),
        ),
        (
            json!({"properties": {"a": {"type": "object", "properties": {"b": {"type": "integer", "default": 1}}}}}),
            json!({}),
            json!({}),
        ),
        (
            json!({"properties": {"l": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "integer", "default": 1}}}}}}),
            json!({"l": [{}, {"b": 2}]}),
            json!({"l": [{"b": 1}, {"b": 2}]}),
        ),
        (
            json!({"properties": {"m": {"type": "object", "additionalProperties": {"type": "string", "default": "A"}}}}),
            json!({"m": {"x": null, "y": "B"}}),
            json!({"m": {"x": "A", "y": "B"}}),
        ),
        (
            json!({"properties": {"l": {"type": "array", "items": {"type": "string", "default": "A"}}}}),
            json!({"l": [null, "B"]}),
            json!({"l": ["A", "B"]}),
        ),
    ];
    for (schema, mut object, expected) in cases {
        compile(&schema).fill_defaults(&mut object).unwrap();
        assert_eq!(object, expected, "{schema}");
    }
}

#[test]
fn defaults_that_would_make_an_object_huge_are_refused() {
    let default = vec![0; 10_000];
    let item = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}, "default": default}}});
    let schema = compile(&json!({"properties": {"l": {"type": "array", "items": item}}}));
    let mut object = json!({"l": vec![json!({}); 1_000]});
    let error = schema.fill_defaults(&mut object).expect_err("too large");
    assert_eq!(
        error.detail,
        "the defaults of its fields make the object too large"
    );
}
