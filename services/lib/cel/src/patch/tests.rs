//! Tests of the patches that expressions make.

use serde_json::{Value as Json, json};

use crate::{Environment, Error, Evaluation, Global, Input, Output, Variables, on_compiler_stack};

/// Evaluates an expression that makes a patch of `object`.
fn patch_of(source: &str, output: Output, object: &Json) -> Result<Json, String> {
    let expression = on_compiler_stack(|| {
        let environment = Environment::new(&[("object", Global::Any)]).with_patch_types();
        environment.compile(source, output)
    })??;
    let inputs = [Input::Json(object)];
    let mut evaluation = Evaluation::new(&NONE, &inputs, 10_000_000);
    evaluation.patch(&expression).map_err(|error| match error {
        Error::Failed(text) => text,
        Error::OutOfBudget => "out of budget".into(),
    })
}

static NONE: std::sync::LazyLock<Variables> = std::sync::LazyLock::new(Variables::default);

fn object(source: &str) -> Result<Json, String> {
    let live = json!({ "spec": { "replicas": 2, "ports": [80] }, "metadata": { "labels": {} } });
    patch_of(source, Output::Object, &live)
}

fn operations(source: &str) -> Result<Json, String> {
    patch_of(source, Output::Patches, &json!({}))
}

/// The cases of upstream's `TestTypeResolver` and `TestCELOptional`.
#[test]
fn typed_objects_are_json() {
    for (source, expected) in [
        ("Object{}", json!({})),
        (
            "Object{spec: Object.spec{replicas: 3}}",
            json!({ "spec": { "replicas": 3 } }),
        ),
        (
            r#"Object{spec: Object.spec{template: Object.spec.template{containers: [
                Object.spec.template.containers{name: "n", args: ["-g"]}]}}}"#,
            json!({ "spec": { "template": { "containers": [{ "name": "n", "args": ["-g"] }] } } }),
        ),
        (
            r#"Object{annotations: {"foo": "bar"}, list: [1, 2]}"#,
            json!({ "annotations": { "foo": "bar" }, "list": [1, 2] }),
        ),
        (
            "Object{a: object.spec}",
            json!({ "a": { "replicas": 2, "ports": [80] } }),
        ),
        (
            "Object{a: 2.0, b: 0.5, c: null, d: b'x'}",
            json!({ "a": 2, "b": 0.5, "c": null, "d": "eA==" }),
        ),
        ("Object{?existing: optional.none()}", json!({})),
        ("Object{?a: optional.of(1)}", json!({ "a": 1 })),
        (
            "Object{?spec: optional.ofNonZeroValue(Object.spec{?replicas: Object{}.?replicas})}",
            json!({}),
        ),
        (
            "object.spec.replicas > 1 ? Object{a: object.spec.replicas + 1} : Object{}",
            json!({ "a": 3 }),
        ),
        (
            "Object{a: Object{list: [1, 2, 3]}.list.sum(), b: Object{}.none, c: has(Object{x: 1}.x)}",
            json!({ "a": 6, "b": null, "c": true }),
        ),
        (
            "Object{a: Object{spec: Object.spec{n: 3}} == Object{spec: Object.spec{n: 1 + 2}}, b: Object{} == Object{n: 1}}",
            json!({ "a": true, "b": false }),
        ),
    ] {
        assert_eq!(object(source), Ok(expected), "{source}");
    }
}

/// The cases of upstream's `TestJSONPatch` that are about the type of operations.
#[test]
fn operations_are_those_of_a_json_patch() {
    let add = json!({ "op": "add", "path": "/spec/replicas", "value": 3 });
    for (source, expected) in [
        (
            r#"[JSONPatch{op: "add", path: "/spec/replicas", value: 3}]"#,
            json!([add]),
        ),
        (
            r#"[JSONPatch{op: "move", from: "/a", path: "/b"}, JSONPatch{op: "remove", path: "/c"}]"#,
            json!([{ "op": "move", "from": "/a", "path": "/b" }, { "op": "remove", "path": "/c" }]),
        ),
        (
            r#"true ? [JSONPatch{op: "add", path: "/spec/replicas", value: 3}] : []"#,
            json!([add]),
        ),
        (
            r#"[JSONPatch{op: "add", path: "/spec", value: Object.spec{selector: Object.spec.selector{}, n: 10}}]"#,
            json!([{ "op": "add", "path": "/spec", "value": { "selector": {}, "n": 10 } }]),
        ),
        (
            r#"[JSONPatch{op: "add", path: "/l/" + jsonpatch.escapeKey("k8s.io/x~y"), value: [
                JSONPatch{op: "o"}.op, JSONPatch{from: "f"}.from, string(JSONPatch{value: "v"}.value), JSONPatch{}.path]}]"#,
            json!([{ "op": "add", "path": "/l/k8s.io~1x~0y", "value": ["o", "f", "v", ""] }]),
        ),
        (
            r#"[JSONPatch{value: [has(JSONPatch{op: "o"}.op), has(JSONPatch{op: ""}.op), has(JSONPatch{}.value), has(JSONPatch{value: 1}.value),
                JSONPatch{} == JSONPatch{path: ""}, JSONPatch{op: "a", value: 1} == JSONPatch{op: "a", value: 1}, JSONPatch{value: "1"} == JSONPatch{value: 1}]}]"#,
            json!([{ "op": "", "path": "", "value": [true, false, false, true, true, true, false] }]),
        ),
    ] {
        assert_eq!(operations(source), Ok(expected), "{source}");
    }
}

#[test]
fn what_is_mistyped_is_refused() {
    for (found, expected) in [
        (object("'teapot'"), "must evaluate to Object but got string"),
        (
            object("Object.spec.metadata{}"),
            "must evaluate to Object but got Object.spec.metadata",
        ),
        (
            operations("[1]"),
            "must evaluate to list(JSONPatch) but got list(int)",
        ),
        (
            object("Object{a: Invalid{}}"),
            "undeclared reference to 'Invalid' (in container '')",
        ),
        (
            operations("[JSONPatch{op: 1}]"),
            "expected type of field 'op' is 'string' but provided type is 'int'",
        ),
        (operations("[JSONPatch{x: 1}]"), "undefined field 'x'"),
        (
            object("Object{?a: 1}"),
            "expected type 'optional_type(int)' but found 'int'",
        ),
        (
            object("Object{spec: Object.specx{n: 1}}"),
            "type mismatch: unexpected type name \"Object.specx\", expected \"Object.spec\", which matches field name path from root Object type",
        ),
        (
            operations(
                "[JSONPatch{op: 'add', path: '/c', value: Object.c{ports: [Object.c.portsZ{n: 1}]}}]",
            ),
            "type mismatch: unexpected type name \"Object.c.portsZ\", expected \"Object.c.ports\", which matches field name path from root Object type",
        ),
        (
            object("Object{a: quantity('1')}"),
            "type conversion error from 'kubernetes.Quantity' to 'google.protobuf.Value'",
        ),
        (object("Object{a: {1: 2}}"), "map key is not a string"),
    ] {
        let error = found.unwrap_err();
        assert!(error.contains(expected), "{error}\n{expected}");
    }
}

/// Values are shared, and JSON is not: its size is paid.
#[test]
fn a_value_that_repeats_itself_is_out_of_budget() {
    let list = "[1,1,1,1,1,1,1,1,1,1]";
    let source = format!(
        "Object{{a: {list}.map(a, {list}.map(b, {list}.map(c, {list}.map(d, object.big))))}}"
    );
    let live = json!({ "big": "x".repeat(100_000) });
    let error = patch_of(&source, Output::Object, &live).unwrap_err();
    assert!(
        error.contains("cost limit exceeded") || error == "out of budget",
        "{error}"
    );
}

#[test]
fn other_expressions_have_no_types_of_patches() {
    for source in ["Object{}", "[JSONPatch{}]", "jsonpatch.escapeKey('a')"] {
        let compiled = on_compiler_stack(|| Environment::new(&[]).compile(source, Output::Any));
        let error = compiled.unwrap().unwrap_err();
        assert!(error.contains("undeclared reference"), "{error}");
    }
}
