//! Valid objects of each stored kind: the examples of the `.proto` files.

use serde_json::{Value, json};
use setpoint_codec::{Kind, kinds};

/// Returns the kind with this number and the JSON of an object.
pub fn example(number: u8) -> (&'static Kind, Value) {
    let count = kinds().iter().count();
    let kind = kinds().iter().nth(usize::from(number) % count);
    let kind = kind.expect("the number is below the count");
    (kind, document(kind, "web"))
}

/// Returns the JSON of a valid object of this kind and name. A kind that gives no choice of a name has its own.
pub fn document(kind: &Kind, name: &str) -> Value {
    let mut document = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": { "name": name, "labels": { "app": "web", "tier": "5" } },
    });
    if kind.example.is_empty() {
        return document;
    }
    let example: Value = serde_json::from_str(&kind.example).expect("an example is JSON");
    for (field, value) in example.as_object().into_iter().flatten() {
        match field.as_str() {
            "metadata" => document["metadata"]["name"] = value["name"].clone(),
            field => document[field] = value.clone(),
        }
    }
    document
}
