//! The descriptions in OpenAPI documents, which `kubectl explain` prints.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::http::api::Api;

/// The length in characters below which a description of a field says nothing.
const SHORTEST: usize = 25;

/// Words that say nothing by themselves.
const FILLERS: [&str; 16] = [
    "a", "an", "and", "are", "as", "by", "for", "in", "is", "it", "of", "or", "that", "the",
    "this", "to",
];

/// Every field of every definition has a text of its own, in both versions of OpenAPI.
#[tokio::test]
async fn every_field_has_a_description() {
    let api = Api::start().await;
    let v2 = definitions(&api.get("/openapi/v2").await.ok()["definitions"]);
    let v3 = definitions_of_v3(&api).await;
    assert!(fields(&v2).count() > 2000);
    let wrong: Vec<_> = v2
        .iter()
        .chain(&v3)
        .flat_map(|(name, schema)| faults(name, schema))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// kubectl asks for v3, and for v2 with `--output=plaintext-openapiv2`.
#[tokio::test]
async fn both_versions_of_openapi_have_the_same_descriptions() {
    let api = Api::start().await;
    let v2 = definitions(&api.get("/openapi/v2").await.ok()["definitions"]);
    let v3 = definitions_of_v3(&api).await;
    for ((name, field), text) in fields(&v3) {
        assert_eq!(
            *text, v2[name]["properties"][field]["description"],
            "{name}.{field}"
        );
    }
    for (name, schema) in &v3 {
        assert_eq!(schema["description"], v2[name]["description"], "{name}");
    }
}

#[tokio::test]
async fn every_operation_and_parameter_has_a_description() {
    let api = Api::start().await;
    let v2 = api.get("/openapi/v2").await.ok();
    for (path, operations) in v2["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let parameters = if method == "parameters" {
                operation
            } else {
                &operation["parameters"]
            };
            let described = parameters.as_array().into_iter().flatten();
            let described = described.chain((method != "parameters").then_some(operation));
            for one in described {
                let text = one["description"].as_str().unwrap_or_default();
                assert!(text.len() >= 10, "{method} {path}: {one}");
            }
        }
    }
}

type Definitions = BTreeMap<String, Value>;

fn definitions(schemas: &Value) -> Definitions {
    let schemas = schemas.as_object().cloned().unwrap_or_default();
    schemas.into_iter().collect()
}

async fn definitions_of_v3(api: &Api) -> Definitions {
    let index = api.get("/openapi/v3").await.ok();
    let mut all = Definitions::new();
    for path in index["paths"].as_object().unwrap().keys() {
        let document = api.get(&format!("/openapi/v3/{path}")).await.ok();
        all.extend(definitions(&document["components"]["schemas"]));
    }
    all
}

/// Returns the descriptions of all fields by definition and name.
fn fields(definitions: &Definitions) -> impl Iterator<Item = ((&String, &String), &Value)> {
    definitions.iter().flat_map(|(name, schema)| {
        let fields = schema["properties"].as_object().into_iter().flatten();
        fields.map(move |(field, schema)| ((name, field), &schema["description"]))
    })
}

/// Returns what is wrong with the descriptions of a definition and of its fields.
fn faults(name: &str, schema: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    if schema["description"].as_str().is_none_or(str::is_empty) {
        faults.push(format!("{name} has no description"));
    }
    let empty = Map::new();
    let mut seen = BTreeSet::new();
    for (field, schema) in schema["properties"].as_object().unwrap_or(&empty) {
        let text = schema["description"].as_str().unwrap_or_default();
        let fault = if text.chars().count() < SHORTEST {
            "is short"
        } else if says_nothing(text, field, schema) {
            "repeats name and type"
        } else if !seen.insert(text) {
            "is that of another field"
        } else {
            continue;
        };
        faults.push(format!("{name}.{field} {fault}: {text}"));
    }
    faults
}

/// Returns whether a text has no word beyond the name of the field and that of its type.
fn says_nothing(text: &str, field: &str, schema: &Value) -> bool {
    let of = ["/$ref", "/allOf/0/$ref", "/items/$ref", "/type"];
    let of = of
        .iter()
        .filter_map(|at| schema.pointer(at)?.as_str()?.rsplit(['/', '.']).next());
    let known: BTreeSet<_> = of.chain([field]).flat_map(words).collect();
    let mut said = words(text).into_iter();
    said.all(|word| known.contains(&word) || FILLERS.contains(&word.as_str()))
}

/// Returns the words of a text or of a name in camelCase, in lower case and without the `s` of plurals.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in text.chars() {
        if !letter.is_lowercase() {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            words.last_mut().unwrap().extend(letter.to_lowercase());
        }
    }
    let words = words.into_iter().filter(|word| !word.is_empty());
    words
        .map(|word| word.trim_end_matches('s').to_owned())
        .collect()
}

#[test]
fn a_text_has_to_say_more_than_name_and_type() {
    let schema = serde_json::json!({ "type": "string" });
    assert!(says_nothing(
        "The names of the storage, a string.",
        "storageName",
        &schema
    ));
    assert!(!says_nothing(
        "The name of the storage class.",
        "storageName",
        &schema
    ));
}
