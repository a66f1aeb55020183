//! The paths of a kind and their operations.

use serde_json::{Map, Value, json};
use setpoint_codec::{Kind, kinds};

use super::super::accept::PROTOBUF;
use super::super::discovery::{path_of, subresource_kind};
use super::super::write::PATCHES;
use super::super::yaml::YAML;
use super::schema;

const LIST: &[(&str, &str)] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const WRITE: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
];
const DELETE: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("propagationPolicy", "string"),
];

/// The media types of objects.
const TYPES: [&str; 3] = ["application/json", YAML, PROTOBUF];

/// Adds the paths of a kind.
pub(super) fn add_kind(paths: &mut Map<String, Value>, kind: &'static Kind) {
    let root = path_of(&kind.group, &kind.version);
    let all = format!("{root}/{}", kind.plural);
    let collection = match kind.namespaced {
        true => format!("{root}/namespaces/{{namespace}}/{}", kind.plural),
        false => all.clone(),
    };
    let object = format!("{collection}/{{name}}");
    if kind.namespaced {
        paths.insert(all, json!({ "get": operation("list", kind) }));
    }
    for subresource in &kind.subresources {
        let path = format!("{object}/{subresource}");
        let operations = subresource_operations(subresource_kind(kind, subresource), subresource);
        paths.insert(path.clone(), with_parameters(operations, &path));
    }
    let operations = json!({
        "get": operation("list", kind),
        "post": operation("post", kind),
        "delete": operation("deletecollection", kind),
    });
    paths.insert(collection.clone(), with_parameters(operations, &collection));
    let operations = json!({
        "get": operation("get", kind),
        "put": operation("put", kind),
        "patch": operation("patch", kind),
        "delete": operation("delete", kind),
    });
    paths.insert(object.clone(), with_parameters(operations, &object));
}

fn subresource_operations(kind: &'static Kind, subresource: &str) -> Value {
    match subresource {
        "binding" => json!({ "post": operation("post", kind) }),
        "log" => json!({ "get": operation("get", kind) }),
        _ => json!({
            "get": operation("get", kind),
            "put": operation("put", kind),
            "patch": operation("patch", kind),
        }),
    }
}

fn with_parameters(mut operations: Value, path: &str) -> Value {
    let variables = ["namespace", "name"].into_iter();
    let variables = variables.filter(|name| path.contains(&format!("{{{name}}}")));
    let parameter = |name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
    let parameters: Vec<Value> = variables.map(parameter).collect();
    if !parameters.is_empty() {
        operations["parameters"] = parameters.into();
    }
    operations
}

fn operation(action: &str, kind: &'static Kind) -> Value {
    let query = match action {
        "get" => &[],
        "list" => LIST,
        "delete" | "deletecollection" => DELETE,
        _ => WRITE,
    };
    let mut operation = json!({
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": schema::group_version_kind(kind, &kind.kind),
        "responses": responses(action, kind),
    });
    // As Kubernetes, omit an empty list.
    if !query.is_empty() {
        operation["parameters"] = query.iter().map(parameter).collect();
    }
    if let Some(body) = body(action, kind) {
        operation["requestBody"] = json!({ "content": body });
    }
    operation
}

/// Returns the responses of an operation by HTTP status; the default is an error.
fn responses(action: &str, kind: &'static Kind) -> Value {
    let own = schema::reference(&schema::kind_name(kind));
    let status = schema::reference(schema::STATUS);
    let list = || schema::reference(&schema::list_name(kind));
    let schema = match action {
        "list" => list(),
        "delete" => json!({ "anyOf": [own, status] }),
        "deletecollection" => json!({ "anyOf": [list(), status] }),
        _ => own,
    };
    let mut responses = json!({
        "200": response("OK", &TYPES, &schema),
        "default": response("Error", &["application/json"], &status),
    });
    if action == "post" {
        responses["201"] = response("Created", &TYPES, &schema);
    }
    responses
}

fn response(description: &str, types: &[&str], schema: &Value) -> Value {
    json!({ "description": description, "content": content(types, schema) })
}

fn parameter((name, of): &(&str, &str)) -> Value {
    json!({ "name": name, "in": "query", "schema": { "type": of } })
}

fn body(action: &str, kind: &'static Kind) -> Option<Value> {
    let own = schema::reference(&schema::kind_name(kind));
    match action {
        "post" | "put" => Some(content(&TYPES, &own)),
        "patch" => Some(content(&PATCHES, &json!({ "type": "object" }))),
        "delete" | "deletecollection" => {
            let options = kinds().by_kind("v1", "DeleteOptions")?;
            let options = schema::reference(&schema::kind_name(options));
            Some(content(&TYPES, &options))
        }
        _ => None,
    }
}

fn content(types: &[&str], schema: &Value) -> Value {
    let types = types
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "schema": schema })));
    Value::Object(types.collect())
}
