use serde_json::{Value, json};
use setpoint_schema::validate_definition;

/// Returns the violations of a schema as lines, with `s` as its path.
fn problems(schema: &Value, has_status: bool) -> Vec<String> {
    let found = validate_definition(schema, "s", has_status);
    found.iter().map(ToString::to_string).collect()
}

/// Returns the violations of a field `x`, without the path of the field.
fn problems_of_x(schema: &Value) -> Vec<String> {
    let object = json!({"type": "object", "properties": {"x": schema}});
    let found = problems(&object, false).into_iter();
    found
        .map(|line| line.replace("s.properties[x]", "x"))
        .collect()
}

#[test]
fn a_usual_schema_is_accepted() {
    let schema = json!({"type": "object", "description": "A thing.", "required": ["spec"], "properties": {
        "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
        "spec": {"type": "object", "properties": {
            "replicas": {"type": "integer", "format": "int32", "minimum": 0, "default": 1},
            "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^[0-9]+%?$"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
            "template": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}},
            "oneOf": [{"required": ["replicas"]}, {"properties": {"port": {"not": {"enum": ["1"]}}}}]}}});
    assert_eq!(problems(&schema, true), [""; 0]);
}

#[test]
fn schemas_must_be_structural() {
    let cases: Vec<(Value, &[&str])> = vec![
        (
            json!({}),
            &["x.type: Required value: must not be empty for specified object fields"],
        ),
        (
            json!({"type": "array"}),
            &["x.items: Required value: must be specified"],
        ),
        (
            json!({"type": "array", "items": {}}),
            &["x.items.type: Required value: must not be empty for specified array items"],
        ),
        (
            json!({"type": "string", "anyOf": [{"type": "string", "default": "a", "nullable": true, "description": "d", "title": "t"}]}),
            &[
                "x.anyOf[0].default: Forbidden: must be undefined to be structural",
                "x.anyOf[0].description: Forbidden: must be empty to be structural",
                "x.anyOf[0].nullable: Forbidden: must be false to be structural",
                "x.anyOf[0].title: Forbidden: must be empty to be structural",
                "x.anyOf[0].type: Forbidden: must be empty to be structural",
            ],
        ),
        (
            json!({"type": "object", "not": {"additionalProperties": {}, "x-kubernetes-list-type": "set", "x-kubernetes-int-or-string": true}}),
            &[
                "x.not.additionalProperties: Forbidden: must be undefined to be structural",
                "x.not.x-kubernetes-int-or-string: Forbidden: must be false to be structural",
                "x.not.x-kubernetes-list-type: Forbidden: must be undefined to be structural",
                "x.not.type: Required value: must be array if x-kubernetes-list-type is specified",
            ],
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true}),
            &[
                "x.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
            ],
        ),
        (
            json!({"type": "string", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
            &[
                r#"x.type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true"#,
            ],
        ),
        (
            json!({"x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true}),
            &[
                "x.x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true",
            ],
        ),
        (
            json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"minimum": 1}]}),
            &[],
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(problems_of_x(&schema), expected, "{schema}");
    }
}

#[test]
fn the_root_is_an_object_and_its_metadata_is_known() {
    let cases: Vec<(Value, &[&str])> = vec![
        (
            json!({}),
            &["s.type: Required value: must not be empty at the root"],
        ),
        (
            json!({"type": "string"}),
            &[r#"s.type: Invalid value: "string": must be object at the root"#],
        ),
        (
            json!({"type": "object", "additionalProperties": true}),
            &["s.additionalProperties: Forbidden: must not be used at the root"],
        ),
        (
            json!({"type": "object", "nullable": true}),
            &["s.nullable: Forbidden: nullable cannot be true at the root"],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}}}),
            &[],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            &[
                "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
            ],
        ),
        (
            json!({"type": "object", "allOf": [{"properties": {"a": {}}}]}),
            &["s.properties[a]: Required value: because it is defined in s.allOf[0].properties[a]"],
        ),
        (
            json!({"type": "object", "properties": {"kind": {"type": "integer"}}}),
            &[r#"s.properties[kind].type: Invalid value: "integer": must be string"#],
        ),
        (
            json!({"type": "object", "properties": {"kind": {"type": "string", "default": "K"}}}),
            &["s.properties[kind].default: Forbidden: must not be set in top-level kind"],
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(problems(&schema, false), expected, "{schema}");
    }
}

#[test]
fn beside_a_status_the_root_says_little() {
    let schema = json!({"type": "object", "maxProperties": 5});
    assert_eq!(problems(&schema, false), [""; 0]);
    let found = problems(&schema, true);
    assert!(found[0].ends_with("XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled"));
}

#[test]
fn keywords_that_are_not_supported_are_refused() {
    let cases: Vec<(Value, &[&str])> = vec![
        (
            json!({"type": "object", "id": "a"}),
            &["x.id: Forbidden: id is not supported"],
        ),
        (
            json!({"type": "object", "$ref": "a"}),
            &["x.$ref: Forbidden: $ref is not supported"],
        ),
        (
            json!({"type": "object", "definitions": {"a": {}}}),
            &["x.definitions: Forbidden: definitions is not supported"],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            &[
                "x.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            &[
                "x.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
            ],
        ),
        (
            json!({"type": "text"}),
            &[
                r#"x.type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string""#,
            ],
        ),
        (
            json!({"type": "array", "items": [{}]}),
            &["x.items: Forbidden: items must be a schema object and not an array"],
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
            &[
                "x.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
            ],
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(problems_of_x(&schema), expected, "{schema}");
    }
}

#[test]
fn lists_and_maps_have_valid_types() {
    let key = |field: Value| {
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
        "items": {"type": "object", "properties": {"a": field}}})
    };
    let cases: Vec<(Value, &[&str])> = vec![
        (
            key(json!({"type": "string"})),
            &[
                "x.items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ],
        ),
        (key(json!({"type": "string", "default": "a"})), &[]),
        (
            key(json!({"type": "string", "default": "a", "nullable": true})),
            &[
                "x.items.properties[a].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
            ],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "string"}}),
            &[
                "x.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
                r#"x.items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map"#,
            ],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}),
            &[
                "x.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
            ],
        ),
        (
            json!({"type": "string", "x-kubernetes-list-type": "set"}),
            &[
                r#"x.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified"#,
            ],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"}),
            &[
                r#"x.x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map""#,
            ],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-map-keys": ["a"]}),
            &[
                "x.x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty",
            ],
        ),
        (
            json!({"type": "array", "items": {"type": "string", "nullable": true}, "x-kubernetes-list-type": "set"}),
            &["x.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"],
        ),
        (
            json!({"type": "object", "x-kubernetes-map-type": "loose"}),
            &[
                r#"x.x-kubernetes-map-type: Unsupported value: "loose": supported values: "atomic", "granular""#,
            ],
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(problems_of_x(&schema), expected, "{schema}");
    }
}

#[test]
fn defaults_are_valid_themselves() {
    let cases: Vec<(Value, &[&str])> = vec![
        (json!({"type": "integer", "default": 1}), &[]),
        (
            json!({"type": "integer", "default": "1"}),
            &[
                r#"x.default: Invalid value: "string": <nil> in body must be of type integer: "string""#,
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 1}}, "default": {"a": "xx"}}),
            &["x.default.a: Too long: may not be more than 1 byte"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}}),
            &[r#"x.default: Invalid value: {"b":1}: must not have unknown fields"#],
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"metadata": {"type": "object",
                "properties": {"name": {"type": "string", "default": ".."}}}}}),
            &[
                r#"x.properties[metadata].properties[name].default: Invalid value: "..": must result in valid metadata: metadata.name: Invalid value: "..": may not be '..'"#,
            ],
        ),
    ];
    for (schema, expected) in cases {
        let found: Vec<_> = problems_of_x(&schema)
            .into_iter()
            .map(|line| line.replace(":  in body", ": <nil> in body"))
            .collect();
        assert_eq!(found, expected, "{schema}");
    }
}

#[test]
fn rules_have_a_valid_form() {
    let with = |rule: Value| {
        json!({"type": "object", "properties": {"a": {"type": "string"}, "m": {"type": "object",
        "additionalProperties": {"type": "string"}}}, "x-kubernetes-validations": [rule]})
    };
    let cases: Vec<(Value, &[&str])> = vec![
        (
            json!({"rule": " "}),
            &["x.rule: Required value: rule is not specified"],
        ),
        (
            json!({"rule": "true", "message": " "}),
            &[r#"x.message: Invalid value: " ": must be non-empty if specified"#],
        ),
        (
            json!({"rule": "true", "message": "a\nb"}),
            &[r#"x.message: Invalid value: "a\nb": must not contain line breaks"#],
        ),
        (
            json!({"rule": "true ||\ntrue"}),
            &["x.message: Required value: message must be specified if rule contains line breaks"],
        ),
        (
            json!({"rule": "true", "reason": "Bad"}),
            &[
                r#"x.reason: Unsupported value: "Bad": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired""#,
            ],
        ),
        (json!({"rule": "true", "fieldPath": ".a"}), &[]),
        (json!({"rule": "true", "fieldPath": ".m['b.c']"}), &[]),
        (
            json!({"rule": "true", "fieldPath": ".b"}),
            &[r#"x.fieldPath: Invalid value: ".b": must be a valid path"#],
        ),
        (
            json!({"rule": "true", "fieldPath": "a"}),
            &[r#"x.fieldPath: Invalid value: "a": must be a valid path"#],
        ),
    ];
    for (rule, expected) in cases {
        let found = problems_of_x(&with(rule.clone())).into_iter();
        let found: Vec<_> = found
            .map(|line| line.replace("x.x-kubernetes-validations[0]", "x"))
            .collect();
        assert_eq!(found, expected, "{rule}");
    }
}
