use proptest::prelude::*;
use serde_json::{Map, Value, json};
use setpoint_schema::{Schema, validate_definition};

const NAMES: [&str; 5] = ["a", "b", "kind", "metadata", "x.y"];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..4).prop_map(Value::from),
        (-3.0..3.0).prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
    ]
}

/// Objects with the names that schemas use, too.
fn object() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(&NAMES[..]), inner, 0..4).prop_map(
                |fields| Value::Object(
                    fields
                        .into_iter()
                        .map(|(name, value)| (name.into(), value))
                        .collect()
                )
            ),
        ]
    })
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"type": "string", "maxLength": 2, "pattern": "^a", "default": "a"})),
        Just(json!({"type": "integer", "minimum": 0, "multipleOf": 2, "nullable": true})),
        Just(json!({"type": "number", "exclusiveMaximum": true, "maximum": 1.5})),
        Just(json!({"x-kubernetes-int-or-string": true, "enum": [1, "a", null]})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
        Just(json!({"type": "string", "format": "ipv4", "not": {"enum": ["b"]}})),
    ]
}

fn node() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 24, 4, |inner| {
        let fields = prop::collection::btree_map(prop::sample::select(&NAMES[..]), inner.clone(), 0..4);
        let flags = any::<(bool, bool)>();
        prop_oneof![
            (fields, flags).prop_map(|(fields, (preserve, embedded))| {
                let fields: Map<_, _> = fields.into_iter().map(|(name, node)| (name.to_owned(), node)).collect();
                json!({"type": "object", "properties": fields, "default": {},
                    "x-kubernetes-preserve-unknown-fields": preserve, "x-kubernetes-embedded-resource": embedded})
            }),
            inner.clone().prop_map(|node| json!({"type": "object", "additionalProperties": node})),
            inner.clone().prop_map(|node| json!({"type": "array", "items": node, "x-kubernetes-list-type": "set"})),
            inner.prop_map(|node| json!({"type": "array", "items": node, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]})),
        ]
    })
}

fn schema() -> impl Strategy<Value = Schema> {
    node().prop_map(|node| crate::compile(&node))
}

/// Any JSON where a schema belongs, with the words of schemas.
fn nonsense() -> impl Strategy<Value = Value> {
    const WORDS: [&str; 12] = [
        "type",
        "properties",
        "items",
        "additionalProperties",
        "enum",
        "default",
        "anyOf",
        "not",
        "required",
        "pattern",
        "maxLength",
        "x-kubernetes-validations",
    ];
    scalar().prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(&WORDS[..]), inner, 0..5).prop_map(
                |fields| Value::Object(
                    fields
                        .into_iter()
                        .map(|(name, value)| (name.into(), value))
                        .collect()
                )
            ),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_pruned_stays_pruned(schema in schema(), mut object in object()) {
        schema.prune(&mut object);
        let once = object.clone();
        prop_assert_eq!(schema.prune(&mut object), Vec::<String>::new());
        prop_assert_eq!(object, once);
    }

    #[test]
    fn defaults_are_filled_once(schema in schema(), mut object in object()) {
        schema.fill_defaults(&mut object).unwrap();
        let once = object.clone();
        schema.fill_defaults(&mut object).unwrap();
        prop_assert_eq!(object, once);
    }

    #[test]
    fn pruning_removes_exactly_the_fields_that_it_reports(schema in schema(), mut object in object()) {
        let before = object.clone();
        let removed = schema.prune(&mut object);
        prop_assert_eq!(removed.is_empty(), object == before);
    }

    #[test]
    fn an_unchanged_object_has_no_errors_but_those_of_types_and_embedded_objects(
        schema in schema(),
        object in object(),
    ) {
        for violation in schema.validate(&object, Some(&object)) {
            let path = violation.path;
            let embedded = ["apiVersion", "kind", "metadata"].iter().any(|name| path.contains(name));
            prop_assert!(embedded, "{path}");
        }
    }

    #[test]
    fn an_accepted_schema_has_defaults_that_it_accepts(node in node()) {
        let json = json!({"type": "object", "properties": {"x": node}});
        prop_assume!(validate_definition(&json, "s", false).is_empty());
        let schema = Schema::compile(&json).unwrap();
        if let Some(default) = schema.root().properties["x"].default.clone() {
            let object = json!({"x": default});
            let mut pruned = object.clone();
            schema.prune(&mut pruned);
            prop_assert_eq!(&pruned, &object);
            prop_assert_eq!(schema.validate(&object, None), vec![]);
        }
    }

    #[test]
    fn no_schema_and_no_object_panics(schema in nonsense(), mut object in object(), old in object()) {
        validate_definition(&schema, "s", true);
        if let Ok(schema) = Schema::compile(&schema) {
            schema.prune(&mut object);
            schema.fill_defaults(&mut object).unwrap();
            schema.validate(&object, Some(&old));
        }
    }
}
