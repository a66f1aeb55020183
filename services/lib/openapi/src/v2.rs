//! The document of OpenAPI v2 (Swagger), in parts that are converted from v3.

use std::mem::take;

use serde_json::{Map, Value, json};
use setpoint_codec::kinds;

use super::published::Described;
use super::schema::Schemas;
use super::v3::{add_kind, body_schemas, document};
use super::{custom, paths};

type Object = Map<String, Value>;

/// Returns the document of the built-in kinds in parts, one for each kind: the whole would take much memory at once.
pub(super) fn built_in_parts() -> impl Iterator<Item = Value> {
    // Schemas of earlier parts stay as null.
    let mut schemas = body_schemas();
    kinds().served().map(move |kind| {
        let mut paths = Map::new();
        add_kind(&mut paths, &mut schemas, kind);
        let new = schemas.iter_mut().filter(|(_, schema)| !schema.is_null());
        let new = new.map(|(name, schema)| (name.clone(), schema.take()));
        convert(document(paths, new.collect()))
    })
}

/// Returns the part of the document with a custom kind. The schemas that it refers to are in other parts.
pub(super) fn part_of_custom((kind, definition): &Described) -> Value {
    let (mut paths, mut schemas) = (Map::new(), Schemas::new());
    paths::add_kind(&mut paths, kind, definition);
    custom::add_kind(&mut schemas, kind, definition, custom::Form::V2);
    convert(document(paths, schemas))
}

/// Converts a document of v3.
fn convert(mut v3: Value) -> Value {
    let mut schemas = take(&mut v3["components"]["schemas"]);
    entries(&mut schemas).for_each(convert_schema);
    let mut paths = take(&mut v3["paths"]);
    entries(&mut paths).for_each(convert_path);
    json!({
        "swagger": "2.0",
        "info": v3["info"],
        "paths": paths,
        "definitions": schemas,
    })
}

fn entries(object: &mut Value) -> impl Iterator<Item = &mut Value> {
    object.as_object_mut().into_iter().flat_map(Map::values_mut)
}

fn elements(list: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    list.and_then(Value::as_array_mut).into_iter().flatten()
}

fn convert_path(path: &mut Value) {
    let Some(path) = path.as_object_mut() else {
        return;
    };
    elements(path.get_mut("parameters")).for_each(convert_parameter);
    let operations = path.iter_mut().filter(|(name, _)| *name != "parameters");
    operations.for_each(|(_, operation)| convert_operation(operation));
}

fn convert_parameter(parameter: &mut Value) {
    let Some(parameter) = parameter.as_object_mut() else {
        return;
    };
    if let Some(Value::Object(schema)) = parameter.remove("schema") {
        parameter.extend(schema);
    }
    parameter.insert("uniqueItems".into(), true.into());
}

fn convert_operation(operation: &mut Value) {
    let Some(operation) = operation.as_object_mut() else {
        return;
    };
    elements(operation.get_mut("parameters")).for_each(convert_parameter);
    if let Some(mut body) = operation.remove("requestBody") {
        let (types, schema) = content(take(&mut body["content"]));
        operation.insert("consumes".into(), types);
        let text = body["description"].take();
        let mut body = json!({ "in": "body", "name": "body", "required": true, "schema": schema });
        if text.is_string() {
            body["description"] = text;
        }
        let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
        if let Some(parameters) = parameters.as_array_mut() {
            parameters.push(body);
        }
    }
    let mut produces = None;
    for response in operation.get_mut("responses").into_iter().flat_map(entries) {
        let (types, schema) = content(take(&mut response["content"]));
        produces = produces.or(Some(types));
        *response = json!({ "description": response["description"], "schema": schema });
    }
    operation.insert("produces".into(), produces.unwrap_or_default());
}

/// Returns the media types of a content, and its schema.
fn content(content: Value) -> (Value, Value) {
    let Value::Object(content) = content else {
        return Default::default();
    };
    let types = content.keys().cloned().collect();
    let first = content.into_iter().next();
    let schema = first.map(|(_, mut content)| take(&mut content["schema"]));
    let mut schema = schema.unwrap_or_default();
    convert_schema(&mut schema);
    (types, schema)
}

/// Converts a schema and those in it. v2 has no alternatives, and a reference may have a description beside it.
fn convert_schema(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    schema.remove("default");
    flatten(schema);
    if let Some(Value::String(reference)) = schema.get_mut("$ref") {
        *reference = reference.replace("#/components/schemas/", "#/definitions/");
    }
    if schema.remove("oneOf").is_some() {
        schema.insert("type".into(), "string".into());
    }
    for name in ["items", "additionalProperties"] {
        schema.get_mut(name).into_iter().for_each(convert_schema);
    }
    let properties = schema.get_mut("properties").into_iter();
    properties.flat_map(entries).for_each(convert_schema);
}

/// Replaces `allOf` with one schema by the schema, and `anyOf` by its last.
fn flatten(schema: &mut Object) {
    for name in ["allOf", "anyOf"] {
        if let Some(Value::Array(mut schemas)) = schema.remove(name)
            && let Some(Value::Object(only)) = schemas.pop()
        {
            schema.extend(only);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_keeps_its_description() {
        let mut schema = json!({
            "allOf": [{ "$ref": "#/components/schemas/a" }],
            "default": {},
            "description": "text",
        });
        convert_schema(&mut schema);
        let expected = json!({ "$ref": "#/definitions/a", "description": "text" });
        assert_eq!(schema, expected);
    }

    #[test]
    fn alternatives_are_strings() {
        let mut schema = json!({ "properties": { "port": {
            "format": "int-or-string",
            "oneOf": [{ "type": "integer" }, { "type": "string" }],
        } } });
        convert_schema(&mut schema);
        let port = &schema["properties"]["port"];
        assert_eq!(
            *port,
            json!({ "type": "string", "format": "int-or-string" })
        );
    }

    #[test]
    fn a_body_is_a_parameter() {
        let schema = json!({ "$ref": "#/components/schemas/a" });
        let content = json!({ "application/json": { "schema": schema } });
        let document = convert(json!({ "paths": { "/a": { "post": {
            "requestBody": { "content": content },
            "responses": { "200": { "description": "OK", "content": content } },
        } } } }));
        let post = &document["paths"]["/a"]["post"];
        let schema = json!({ "$ref": "#/definitions/a" });
        assert_eq!(post["consumes"], json!(["application/json"]));
        assert_eq!(post["parameters"][0]["schema"], schema);
        assert_eq!(post["responses"]["200"]["schema"], schema);
    }
}
