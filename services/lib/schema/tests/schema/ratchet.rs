use serde_json::{Value, json};

use crate::{compile, lines};

fn schema() -> setpoint_schema::Schema {
    compile(&json!({"type": "object", "properties": {
        "kind": {"type": "string", "maxLength": 1},
        "a": {"type": "string", "maxLength": 1},
        "o": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 1}, "b": {"type": "string"}}},
        "atomic": {"type": "array", "items": {"type": "string", "maxLength": 1}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string", "maxLength": 1}}}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}))
}

#[test]
fn errors_of_unchanged_parts_are_suppressed() {
    const LONG: &str = "Too long: may not be more than 1 byte";
    let item = |key: &str, value: &str| json!({"k": key, "v": value});
    let cases: Vec<(Value, Value, Vec<String>)> = vec![
        (json!({"a": "xx"}), json!({"a": "xx", "o": {}}), vec![]),
        (
            json!({"a": "xx"}),
            json!({"a": "xy"}),
            vec![format!("a: {LONG}")],
        ),
        (json!({}), json!({"a": "xx"}), vec![format!("a: {LONG}")]),
        (
            json!({"o": {"a": "xx"}}),
            json!({"o": {"a": "xx", "b": "y"}}),
            vec![],
        ),
        (
            json!({"kind": "Kind"}),
            json!({"kind": "Kind", "a": ""}),
            vec![format!("kind: {LONG}")],
        ),
        (
            json!({"atomic": ["xx"]}),
            json!({"atomic": ["xx"], "a": ""}),
            vec![],
        ),
        (
            json!({"atomic": ["xx"]}),
            json!({"atomic": ["xx", "y"]}),
            vec![format!("atomic[0]: {LONG}")],
        ),
        (
            json!({"map": [item("1", "xx")]}),
            json!({"map": [item("0", "y"), item("1", "xx")]}),
            vec![],
        ),
        (
            json!({"map": [item("1", "xx")]}),
            json!({"map": [item("2", "xx")]}),
            vec![format!("map[0].v: {LONG}")],
        ),
        (
            json!({"set": ["a", "a"]}),
            json!({"set": ["a", "a"], "a": "x"}),
            vec![],
        ),
        (
            json!({"set": ["a"]}),
            json!({"set": ["a", "a"]}),
            vec!["set[1]: Duplicate value: \"a\"".into()],
        ),
    ];
    for (old, new, expected) in cases {
        assert_eq!(lines(&schema(), &new, Some(&old)), expected, "{new}");
    }
}

#[test]
fn an_object_that_is_written_unchanged_has_no_errors_of_values() {
    let object = json!({"a": "xx", "map": [{"k": "1", "v": "yy"}], "set": ["a", "a"]});
    assert_eq!(lines(&schema(), &object, Some(&object)), [""; 0]);
    assert_eq!(lines(&schema(), &object, None).len(), 3);
}

#[test]
fn an_unchanged_list_with_repeated_keys_has_no_errors() {
    let schema = crate::compile(&json!({
        "type": "array",
        "items": { "type": "string" },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
    }));
    let list = json!([{ "b": null }, {}]);
    assert_eq!(schema.validate(&list, Some(&list)), vec![]);
}

#[test]
fn what_rules_say_of_unchanged_parts_is_told_apart() {
    let schema = compile(&json!({"type": "object", "properties": {
        "a": {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'x'"}]},
        "b": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}}));
    let old = json!({"a": "y", "b": "1"});
    let mut forgiven = Vec::new();
    let found = schema.validate_and_forgive(&old, Some(&old), &mut forgiven);
    assert_eq!(found, vec![]);
    let forgiven: Vec<_> = forgiven.iter().map(ToString::to_string).collect();
    assert_eq!(
        forgiven,
        [r#"a: Invalid value: "y": failed rule: self == 'x'"#]
    );
    let new = json!({"a": "z", "b": "2"});
    let mut forgiven = Vec::new();
    assert_eq!(
        schema
            .validate_and_forgive(&new, Some(&old), &mut forgiven)
            .len(),
        2
    );
    assert_eq!(forgiven, vec![]);
}
