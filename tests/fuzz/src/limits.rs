//! Objects of a custom kind at the limits of depth, size and numbers, and in unusual encodings.
//!
//! Checked of each object that is accepted: it is returned as acknowledged by a read, a list and a watch, can be
//! updated and deleted, and is gone afterwards.

use std::iter::repeat_n;
use std::time::Duration;

use arbitrary::{Result, Unstructured};
use axum::body::Body;
use http::header::CONTENT_TYPE;
use http::{Method, Request, StatusCode};
use serde_json::Value;

use crate::gateway::{Gateway, Reply, json_request};

/// The maximum number of objects.
const OBJECTS: usize = 4;
/// Beyond the limit on the depth of documents.
const MAX_DEPTH: usize = 140;
/// Beyond the limit on the size of objects.
const MAX_SIZE: usize = 3 << 20;
/// Long enough to establish a definition, in paused time.
const ESTABLISHED: Duration = Duration::from_secs(30);

const COLLECTION: &str = "/apis/example.com/v1/namespaces/default/widgets";
const OBJECT: &str = "/apis/example.com/v1/namespaces/default/widgets/w";
const DEFINITION: &str = r#"{
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": { "name": "widgets.example.com" },
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": { "plural": "widgets", "kind": "Widget" },
        "versions": [{
            "name": "v1",
            "served": true,
            "storage": true,
            "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } }
        }]
    }
}"#;

/// Numbers that not every representation holds.
const NUMBERS: &[&str] = &[
    "-0",
    "-0.0",
    "1e400",
    "1e-400",
    "0.1e1",
    "9007199254740993",
    "9223372036854775808",
    "18446744073709551616",
    "-9223372036854775809",
    "1E+2",
];
/// Strings, and fields of objects, in unusual encodings.
const TEXTS: &[&str] = &[
    r#""\u0000""#,
    r#""\ud83d\ude00""#,
    r#""\ud800""#,
    r#"{"":{"":null}}"#,
    r#"{"a":1,"a":2}"#,
    r#"{"f:a":{".":{}},"k:{}":[]}"#,
    r#"[null,{},[]]"#,
];

/// Sends the objects that the input encodes.
pub fn run(input: &[u8]) {
    let gateway = Gateway::start();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let defined = gateway.send(json_request(Method::POST, definitions, DEFINITION.into()));
    assert_eq!(defined.code, StatusCode::CREATED, "{defined:?}");
    gateway.run_background_for(ESTABLISHED);
    let mut u = Unstructured::new(input);
    for _ in 0..OBJECTS {
        match value(&mut u) {
            Ok(spec) if !u.is_empty() => live(&gateway, &spec),
            _ => break,
        }
    }
}

/// Returns the JSON text of a value.
fn value(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(match u.int_in_range(0..=5)? {
        0 => nested(r#"{"a":"#, "}", u)?,
        1 => nested("[", "]", u)?,
        2 => (*u.choose(NUMBERS)?).to_owned(),
        3 => (*u.choose(TEXTS)?).to_owned(),
        4 => format!("\"{}\"", "x".repeat(u.int_in_range(0..=MAX_SIZE)?)),
        _ => {
            let items = repeat_n("{\"a\":0}", u.int_in_range(0..=10_000)?);
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        }
    })
}

fn nested(open: &str, close: &str, u: &mut Unstructured<'_>) -> Result<String> {
    let depth = u.int_in_range(0..=MAX_DEPTH)?;
    Ok(open.repeat(depth) + "1" + &close.repeat(depth))
}

/// Creates an object, and if it was accepted, reads, updates and deletes it.
fn live(gateway: &Gateway, spec: &str) {
    let body = format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"w"}},"spec":{spec}}}"#
    );
    let created = gateway.send(json_request(Method::POST, COLLECTION, body));
    if !created.code.is_success() {
        return;
    }
    let created = json(&created);
    assert_eq!(created["metadata"]["name"], "w");
    assert_eq!(get(gateway, OBJECT), created);
    assert_eq!(get(gateway, COLLECTION)["items"][0], created);
    let watch = format!("{COLLECTION}?watch=true&timeoutSeconds=1");
    assert_eq!(get(gateway, &watch)["object"], created);
    let updated = gateway.send(label());
    assert_eq!(json(&updated)["spec"], created["spec"]);
    assert!(updated.code.is_success(), "{updated:?}");
    let deleted = gateway.send(json_request(Method::DELETE, OBJECT, String::new()));
    assert!(deleted.code.is_success(), "{deleted:?}");
    let read = gateway.send(json_request(Method::GET, OBJECT, String::new()));
    assert_eq!(read.code, StatusCode::NOT_FOUND);
}

fn label() -> Request<Body> {
    let request = Request::patch(OBJECT).header(CONTENT_TYPE, "application/merge-patch+json");
    let body = r#"{"metadata":{"labels":{"a":"b"}}}"#;
    request.body(body.into()).expect("the path is valid")
}

fn get(gateway: &Gateway, path: &str) -> Value {
    let reply = gateway.send(json_request(Method::GET, path, String::new()));
    assert!(reply.code.is_success(), "{path}: {reply:?}");
    json(&reply)
}

fn json(reply: &Reply) -> Value {
    reply.json().expect("the response is JSON")
}
