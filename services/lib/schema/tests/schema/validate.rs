use serde_json::{Value, json};

use crate::{compile, lines, of_x};

#[test]
fn values_have_the_errors_of_upstream() {
    let cases: Vec<(Value, Value, &[&str])> = vec![
        (json!({"type": "integer"}), json!(1), &[]),
        (json!({"type": "integer"}), json!(1.0), &[]),
        (
            json!({"type": "integer"}),
            json!("1"),
            &[r#"x: Invalid value: "string": x in body must be of type integer: "string""#],
        ),
        (
            json!({"type": "integer"}),
            json!(1.5),
            &[r#"x: Invalid value: "number": x in body must be of type integer: "number""#],
        ),
        (json!({"type": "number"}), json!(1), &[]),
        (
            json!({"type": "string"}),
            Value::Null,
            &[r#"x: Invalid value: "null": x in body must be of type string: "null""#],
        ),
        (
            json!({"type": "string", "nullable": true}),
            Value::Null,
            &[],
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!("50%"),
            &[],
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            &[
                r#"x: Invalid value: "boolean": x in body must be of type integer,string: "boolean""#,
            ],
        ),
        (
            json!({"type": "integer", "maximum": 3}),
            json!(5),
            &["x: Invalid value: 5: x in body should be less than or equal to 3"],
        ),
        (
            json!({"type": "integer", "maximum": 3, "exclusiveMaximum": true}),
            json!(3),
            &["x: Invalid value: 3: x in body should be less than 3"],
        ),
        (
            json!({"type": "number", "minimum": 0.5}),
            json!(0.25),
            &["x: Invalid value: 0.25: x in body should be greater than or equal to 0.5"],
        ),
        (
            json!({"type": "integer", "multipleOf": 3}),
            json!(5),
            &["x: Invalid value: 5: x in body should be a multiple of 3"],
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(3_000_000_000_i64),
            &[
                r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x"#,
            ],
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("c"),
            &[r#"x: Unsupported value: "c": supported values: "a", "b""#],
        ),
        (json!({"type": "integer", "enum": [1, 2]}), json!(2), &[]),
        (
            json!({"type": "string", "nullable": true, "enum": ["a", null]}),
            Value::Null,
            &[r#"x: Unsupported value: null: supported values: "a", "null""#],
        ),
        (
            json!({"type": "string", "maxLength": 2}),
            json!("äöü"),
            &["x: Too long: may not be more than 2 bytes"],
        ),
        (
            json!({"type": "string", "minLength": 2}),
            json!("ä"),
            &[r#"x: Invalid value: "ä": x in body should be at least 2 chars long"#],
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            json!("b"),
            &[r#"x: Invalid value: "b": x in body should match '^a+$'"#],
        ),
        (
            json!({"type": "string", "format": "date"}),
            json!("x"),
            &[r#"x: Invalid value: "x": x in body must be of type date: "x""#],
        ),
        (
            json!({"type": "string", "format": "of-another-world"}),
            json!("x"),
            &[],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}),
            json!(["a", "b"]),
            &["x: Too many: 2: must have at most 1 item"],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
            json!([]),
            &["x: Invalid value: 0: x in body should have at least 1 items"],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!([1]),
            &[r#"x[0]: Invalid value: "integer": x[0] in body must be of type string: "integer""#],
        ),
        (
            json!({"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}}),
            json!({"a": "", "b": 1}),
            &[
                "x: Too many: 2: must have at most 1 item",
                r#"x.b: Invalid value: "integer": x.b in body must be of type string: "integer""#,
            ],
        ),
        (
            json!({"type": "object", "minProperties": 1}),
            json!({}),
            &["x: Invalid value: 0: x in body should have at least 1 properties"],
        ),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}),
            json!({}),
            &["x.a: Required value"],
        ),
    ];
    for (schema, value, expected) in cases {
        let found = lines(&of_x(&schema), &json!({"x": value}), None);
        assert_eq!(found, expected, "{schema} {value}");
    }
}

#[test]
fn junctors_report_themselves_and_their_best_branch() {
    let any = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
    let one = json!({"type": "integer", "oneOf": [{"minimum": 3}, {"minimum": 5}]});
    let all = json!({"type": "integer", "allOf": [{"minimum": 3}, {"maximum": 5}]});
    let not = json!({"type": "integer", "not": {"minimum": 3}});
    let cases: Vec<(&Value, Value, &[&str])> = vec![
        (&any, json!({"b": 1}), &[]),
        (
            &any,
            json!({}),
            &[
                r#"<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)"#,
                "x.a: Required value",
            ],
        ),
        (&one, json!(4), &[]),
        (
            &one,
            json!(6),
            &[
                r#"<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
            ],
        ),
        (
            &one,
            json!(1),
            &[
                r#"<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found none valid"#,
                "x: Invalid value: 1: x in body should be greater than or equal to 3",
            ],
        ),
        (
            &all,
            json!(6),
            &[
                "x: Invalid value: 6: x in body should be less than or equal to 5",
                r#"<nil>: Invalid value: "": "x" must validate all the schemas (allOf)"#,
            ],
        ),
        (
            &not,
            json!(3),
            &[r#"<nil>: Invalid value: "": "x" must not validate the schema (not)"#],
        ),
    ];
    for (schema, value, expected) in cases {
        let found = lines(&of_x(schema), &json!({"x": value}), None);
        assert_eq!(found, expected, "{schema} {value}");
    }
}

#[test]
fn the_branch_with_the_most_checks_explains_a_failure() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["c"]}, {"required": ["d"], "properties": {"a": {"minimum": 1}}}]});
    let found = lines(&of_x(&schema), &json!({"x": {"a": 5}}), None);
    assert_eq!(found[1..], ["x.d: Required value"]);
}

#[test]
fn sets_and_maps_report_the_second_of_equal_items() {
    let set =
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    let map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
        "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "string"}}}});
    let cases: Vec<(&Value, Value, &[&str])> = vec![
        (&set, json!(["a", "b"]), &[]),
        (
            &set,
            json!(["a", "b", "a", "a", "b"]),
            &[
                r#"x[2]: Duplicate value: "a""#,
                r#"x[4]: Duplicate value: "b""#,
            ],
        ),
        (&map, json!([{"a": "1", "b": 1}, {"a": "1", "b": 2}]), &[]),
        (
            &map,
            json!([{"a": "1", "b": 1, "c": "x"}, {"a": "1", "b": 1, "c": "y"}]),
            &[r#"x[1]: Duplicate value: {"a":"1","b":1}"#],
        ),
        (
            &map,
            json!([{"c": "x"}, {"c": "y"}]),
            &["x[1]: Duplicate value: {}"],
        ),
    ];
    for (schema, value, expected) in cases {
        let found = lines(&of_x(schema), &json!({"x": value}), None);
        assert_eq!(found, expected, "{value}");
    }
}

#[test]
fn embedded_objects_have_a_type_and_valid_metadata() {
    let schema = of_x(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
    );
    let cases: Vec<(Value, &[&str])> = vec![
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}),
            &[],
        ),
        (
            json!({}),
            &["x.apiVersion: Required value", "x.kind: Required value"],
        ),
        (
            json!({"apiVersion": "a/b/c", "kind": ""}),
            &[
                r#"x.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#,
                r#"x.kind: Invalid value: "": must not be empty"#,
            ],
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "..", "namespace": "a"}}),
            &[r#"x.metadata.name: Invalid value: "..": may not be '..'"#],
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}}),
            &[
                r#"x.metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"#,
            ],
        ),
    ];
    for (value, expected) in cases {
        let found = lines(&schema, &json!({"x": value}), None);
        assert_eq!(found, expected, "{value}");
    }
}

#[test]
fn schemas_beyond_the_limits_are_refused() {
    let mut deep = json!({"type": "object"});
    for _ in 0..70 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let branches = vec![json!({"required": ["a"]}); 2_001];
    let values: Vec<_> = (0..10_001).collect();
    let patterns: serde_json::Map<_, _> = (0..501)
        .map(|index| {
            (
                format!("p{index}"),
                json!({"type": "string", "pattern": format!("a{index}")}),
            )
        })
        .collect();
    let wide: serde_json::Map<_, _> = (0..50_001)
        .map(|index| (format!("p{index}"), json!({})))
        .collect();
    let cases = [
        (deep, "must not nest schemas deeper than 64 levels"),
        (
            json!({"anyOf": branches}),
            "must not have more than 2000 schemas inside of allOf, anyOf, oneOf and not",
        ),
        (json!({"enum": values}), "must have at most 10000 items"),
        (
            json!({"properties": patterns}),
            "must not have more than 500 distinct patterns",
        ),
        (
            json!({"properties": wide}),
            "must not have more than 50000 schemas",
        ),
        (
            json!({"pattern": "("}),
            "must be a valid regular expression, but isn't: error parsing regexp: unclosed group: `(`",
        ),
        (json!({"type": 5}), "must be a string"),
        (json!([]), "must be an object"),
    ];
    for (schema, expected) in cases {
        let problems = setpoint_schema::Schema::compile(&schema).expect_err(expected);
        assert_eq!(problems.len(), 1, "{expected}");
        assert_eq!(problems[0].detail, expected);
    }
}

#[test]
fn the_path_of_an_error_at_the_root_is_nil() {
    let schema = compile(&json!({"type": "object"}));
    let found = lines(&schema, &json!(1), None);
    assert_eq!(
        found,
        [r#"<nil>: Invalid value: "integer":  in body must be of type object: "integer""#]
    );
}
