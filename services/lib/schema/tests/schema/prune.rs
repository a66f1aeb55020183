use serde_json::{Value, json};

use crate::compile;

#[test]
fn fields_that_no_schema_knows_are_removed() {
    let cases: Vec<(Value, Value, Value, &[&str])> = vec![
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}, "a": "1", "b": 1}),
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}, "a": "1"}),
            &["b"],
        ),
        (
            json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}}}}),
            json!({"l": [{"a": "", "b": ""}, {"c": {}}]}),
            json!({"l": [{"a": ""}, {}]}),
            &["l[0].b", "l[1].c"],
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "object"}}}),
            json!({"a": {"b": 1}, "c": {"d": 1}}),
            json!({"a": {}, "c": {"d": 1}}),
            &["a.b"],
        ),
        (
            json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}}}}),
            json!({"m": {"x": {"a": "", "b": ""}}}),
            json!({"m": {"x": {"a": ""}}}),
            &["m.x.b"],
        ),
        (
            json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": true}}}),
            json!({"m": {"x": {"a": ""}, "y": 1}}),
            json!({"m": {"x": {}, "y": 1}}),
            &["m.x.a"],
        ),
        (
            json!({"type": "object", "properties": {"e": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}}}}),
            json!({"e": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "a", "bogus": 1}, "spec": {"b": 1}, "c": 1}}),
            json!({"e": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "a"}, "spec": {}}}),
            &["e.c", "e.metadata.bogus", "e.spec.b"],
        ),
        (
            json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": {"type": "object", "properties": {"a": {"type": "object"}}}}}}),
            json!({"l": [{"a": {"b": 1}, "c": 1}]}),
            json!({"l": [{"a": {}, "c": 1}]}),
            &["l[0].a.b"],
        ),
    ];
    for (schema, mut object, expected, paths) in cases {
        let removed = compile(&schema).prune(&mut object);
        assert_eq!(object, expected, "{schema}");
        assert_eq!(removed, paths, "{schema}");
    }
}
