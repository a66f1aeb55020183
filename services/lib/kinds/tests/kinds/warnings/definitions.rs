//! CustomResourceDefinitions.

use serde_json::json;

use crate::table::Base;

fn definition() -> Base {
    Base {
        resource: "customresourcedefinitions.apiextensions.k8s.io",
        object: json!({
            "metadata": {"name": "tabs.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "tabs", "singular": "tab", "kind": "Tab", "listKind": "TabList"},
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string"}}}},
                }],
            },
        }),
    }
}

#[test]
fn formats() {
    const PROPERTIES: &str = "spec.versions[0].schema.openAPIV3Schema.properties";
    let cases: [(&str, &[&str]); 8] = [
        (r#"{"a":{"type":"string","format":"date-time"}}"#, &[]),
        (r#"{"a":{"type":"string","format":"k8s-short-name"}}"#, &[]),
        (
            r#"{"a":{"type":"string","format":"hostname2"}}"#,
            &[r#"unrecognized format "hostname2""#],
        ),
        (r#"{"a":{"type":"integer","format":"int64"}}"#, &[]),
        (
            r#"{"a":{"type":"integer","format":"uint8"}}"#,
            &[r#"unrecognized format "uint8""#],
        ),
        (r#"{"a":{"type":"number","format":"double"}}"#, &[]),
        (
            r#"{"a":{"type":"array","items":{"type":"boolean","format":"a"}}}"#,
            &[r#"unrecognized format "a""#],
        ),
        (
            r#"{"a":{"type":"object","additionalProperties":{"type":"string","format":"b"}}}"#,
            &[r#"unrecognized format "b""#],
        ),
    ];
    for (schema, expected) in cases {
        let change = format!("{PROPERTIES}={schema}").leak();
        definition().warned(&[(&*change, expected)]);
    }
}

/// Only formats that an update adds are warned of.
#[test]
fn updates() {
    const A: &str = r#"spec.versions[0].schema.openAPIV3Schema.properties.a.format="a""#;
    definition().warned_of_update(&[
        ("", A, &[r#"unrecognized format "a""#]),
        (A, r#"metadata.labels={"a":"b"}"#, &[]),
        (
            A,
            r#"spec.versions[0].schema.openAPIV3Schema.properties.b={"type":"string","format":"b"}"#,
            &[r#"unrecognized format "b""#],
        ),
    ]);
}
