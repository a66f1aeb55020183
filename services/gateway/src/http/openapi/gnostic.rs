//! The protobuf encoding of OpenAPI v2 that clients of Kubernetes read (gnostic's `OpenAPIv2.proto`), as far as the document
//! needs it. A `oneof` of which only one field is used is that field.

use prost::Message;
use serde_json::{Map, Value};

#[derive(Clone, PartialEq, Message)]
struct Document {
    #[prost(string, tag = "1")]
    swagger: String,
    #[prost(message, optional, tag = "2")]
    info: Option<Info>,
    #[prost(message, optional, tag = "8")]
    paths: Option<Paths>,
    #[prost(message, optional, tag = "9")]
    definitions: Option<Properties>,
}

#[derive(Clone, PartialEq, Message)]
struct Info {
    #[prost(string, tag = "1")]
    title: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Paths {
    #[prost(message, repeated, tag = "2")]
    path: Vec<NamedPathItem>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedPathItem {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<PathItem>,
}

#[derive(Clone, PartialEq, Message)]
struct PathItem {
    #[prost(message, optional, tag = "2")]
    get: Option<Operation>,
    #[prost(message, optional, tag = "3")]
    put: Option<Operation>,
    #[prost(message, optional, tag = "4")]
    post: Option<Operation>,
    #[prost(message, optional, tag = "5")]
    delete: Option<Operation>,
    #[prost(message, optional, tag = "8")]
    patch: Option<Operation>,
    #[prost(message, repeated, tag = "9")]
    parameters: Vec<ParametersItem>,
}

#[derive(Clone, PartialEq, Message)]
struct Operation {
    #[prost(string, repeated, tag = "1")]
    tags: Vec<String>,
    #[prost(string, tag = "5")]
    operation_id: String,
    #[prost(string, repeated, tag = "6")]
    produces: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    consumes: Vec<String>,
    #[prost(message, repeated, tag = "8")]
    parameters: Vec<ParametersItem>,
    #[prost(message, optional, tag = "9")]
    responses: Option<Responses>,
    #[prost(message, repeated, tag = "13")]
    vendor_extension: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
struct ParametersItem {
    #[prost(message, optional, tag = "1")]
    parameter: Option<Parameter>,
}

#[derive(Clone, PartialEq, Message)]
struct Parameter {
    #[prost(message, optional, tag = "1")]
    body: Option<BodyParameter>,
    #[prost(message, optional, tag = "2")]
    other: Option<NonBodyParameter>,
}

#[derive(Clone, PartialEq, Message)]
struct BodyParameter {
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    r#in: String,
    #[prost(bool, tag = "4")]
    required: bool,
    #[prost(message, optional, tag = "5")]
    schema: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
struct NonBodyParameter {
    #[prost(message, optional, tag = "3")]
    query: Option<QueryParameter>,
    #[prost(message, optional, tag = "4")]
    path: Option<PathParameter>,
}

#[derive(Clone, PartialEq, Message)]
struct QueryParameter {
    #[prost(string, tag = "2")]
    r#in: String,
    #[prost(string, tag = "4")]
    name: String,
    #[prost(string, tag = "6")]
    r#type: String,
    #[prost(bool, tag = "20")]
    unique_items: bool,
}

#[derive(Clone, PartialEq, Message)]
struct PathParameter {
    #[prost(bool, tag = "1")]
    required: bool,
    #[prost(string, tag = "2")]
    r#in: String,
    #[prost(string, tag = "4")]
    name: String,
    #[prost(string, tag = "5")]
    r#type: String,
    #[prost(bool, tag = "19")]
    unique_items: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Responses {
    #[prost(message, repeated, tag = "1")]
    response_code: Vec<NamedResponseValue>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedResponseValue {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<ResponseValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ResponseValue {
    #[prost(message, optional, tag = "1")]
    response: Option<Response>,
}

#[derive(Clone, PartialEq, Message)]
struct Response {
    #[prost(string, tag = "1")]
    description: String,
    #[prost(message, optional, tag = "2")]
    schema: Option<SchemaItem>,
}

/// A schema where the original has an alternative to one, or a list of them.
#[derive(Clone, PartialEq, Message)]
struct SchemaItem {
    #[prost(message, optional, boxed, tag = "1")]
    schema: Option<Box<Schema>>,
}

#[derive(Clone, PartialEq, Message)]
struct Schema {
    #[prost(string, tag = "1")]
    reference: String,
    #[prost(string, tag = "2")]
    format: String,
    #[prost(string, tag = "4")]
    description: String,
    #[prost(string, repeated, tag = "19")]
    required: Vec<String>,
    #[prost(message, optional, boxed, tag = "21")]
    additional_properties: Option<Box<SchemaItem>>,
    #[prost(message, optional, tag = "22")]
    r#type: Option<TypeItem>,
    #[prost(message, optional, boxed, tag = "23")]
    items: Option<Box<SchemaItem>>,
    #[prost(message, optional, tag = "25")]
    properties: Option<Properties>,
    #[prost(message, repeated, tag = "31")]
    vendor_extension: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeItem {
    #[prost(string, repeated, tag = "1")]
    value: Vec<String>,
}

/// Schemas by name.
#[derive(Clone, PartialEq, Message)]
struct Properties {
    #[prost(message, repeated, tag = "1")]
    additional_properties: Vec<NamedSchema>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedSchema {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedAny {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<Yaml>,
}

/// A value as YAML, of which JSON is a subset.
#[derive(Clone, PartialEq, Message)]
struct Yaml {
    #[prost(string, tag = "2")]
    yaml: String,
}

/// Encodes a document of OpenAPI v2.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let info = &document["info"];
    let paths = fields(&document["paths"]).map(|(name, path)| NamedPathItem {
        name: name.clone(),
        value: Some(path_item(path)),
    });
    let document = Document {
        swagger: text(&document["swagger"]),
        info: Some(Info {
            title: text(&info["title"]),
            version: text(&info["version"]),
        }),
        paths: Some(Paths {
            path: paths.collect(),
        }),
        definitions: properties(&document["definitions"]),
    };
    document.encode_to_vec()
}

fn path_item(path: &Value) -> PathItem {
    let operation = |name| path.get(name).map(operation);
    PathItem {
        get: operation("get"),
        put: operation("put"),
        post: operation("post"),
        delete: operation("delete"),
        patch: operation("patch"),
        parameters: parameters(&path["parameters"]),
    }
}

fn operation(operation: &Value) -> Operation {
    let responses = fields(&operation["responses"]).map(|(code, value)| NamedResponseValue {
        name: code.clone(),
        value: Some(response(value)),
    });
    Operation {
        tags: texts(&operation["tags"]),
        operation_id: text(&operation["operationId"]),
        produces: texts(&operation["produces"]),
        consumes: texts(&operation["consumes"]),
        parameters: parameters(&operation["parameters"]),
        responses: Some(Responses {
            response_code: responses.collect(),
        }),
        vendor_extension: extensions(operation),
    }
}

fn response(response: &Value) -> ResponseValue {
    ResponseValue {
        response: Some(Response {
            description: text(&response["description"]),
            schema: response.get("schema").map(item),
        }),
    }
}

fn parameters(list: &Value) -> Vec<ParametersItem> {
    let list = list.as_array().into_iter().flatten();
    let items = list.map(|one| ParametersItem {
        parameter: Some(parameter(one)),
    });
    items.collect()
}

fn parameter(parameter: &Value) -> Parameter {
    let (name, place) = (text(&parameter["name"]), text(&parameter["in"]));
    let (of, unique_items) = (text(&parameter["type"]), flag(&parameter["uniqueItems"]));
    let required = flag(&parameter["required"]);
    let mut other = NonBodyParameter::default();
    match place.as_str() {
        "body" => {
            let schema = Some(schema(&parameter["schema"]));
            let body = BodyParameter {
                name,
                r#in: place,
                required,
                schema,
            };
            return Parameter {
                body: Some(body),
                other: None,
            };
        }
        "path" => {
            other.path = Some(PathParameter {
                required,
                r#in: place,
                name,
                r#type: of,
                unique_items,
            });
        }
        _ => {
            other.query = Some(QueryParameter {
                r#in: place,
                name,
                r#type: of,
                unique_items,
            });
        }
    }
    Parameter {
        body: None,
        other: Some(other),
    }
}

fn schema(schema: &Value) -> Schema {
    let boxed = |name| schema.get(name).map(item).map(Box::new);
    let of = schema.get("type").map(|of| TypeItem {
        value: vec![text(of)],
    });
    Schema {
        reference: text(&schema["$ref"]),
        format: text(&schema["format"]),
        description: text(&schema["description"]),
        required: texts(&schema["required"]),
        additional_properties: boxed("additionalProperties"),
        r#type: of,
        items: boxed("items"),
        properties: schema.get("properties").and_then(properties),
        vendor_extension: extensions(schema),
    }
}

fn item(of: &Value) -> SchemaItem {
    SchemaItem {
        schema: Some(Box::new(schema(of))),
    }
}

fn properties(of: &Value) -> Option<Properties> {
    let named = fields(of).map(|(name, value)| NamedSchema {
        name: name.clone(),
        value: Some(schema(value)),
    });
    Some(Properties {
        additional_properties: named.collect(),
    })
}

fn extensions(of: &Value) -> Vec<NamedAny> {
    let extensions = fields(of).filter(|(name, _)| name.starts_with("x-"));
    let named = extensions.map(|(name, value)| NamedAny {
        name: name.clone(),
        value: Some(Yaml {
            yaml: value.to_string(),
        }),
    });
    named.collect()
}

fn fields(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flat_map(Map::iter)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
    texts.map(text).collect()
}

fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_encoded_with_gnostics_field_numbers() {
        let reference = json!({ "$ref": "#/definitions/a" });
        let document = json!({
            "swagger": "2.0",
            "info": { "title": "t", "version": "1" },
            "paths": { "/a": { "patch": {
                "parameters": [
                    { "in": "query", "name": "q", "type": "string" },
                    { "in": "body", "name": "body", "schema": reference },
                ],
                "responses": { "200": { "description": "OK", "schema": reference } },
                "x-kubernetes-action": "patch",
            } } },
            "definitions": { "a": {
                "type": "object",
                "properties": { "b": { "type": "array", "items": { "type": "string" } } },
            } },
        });
        let read = Document::decode(&*encode(&document)).unwrap();
        assert_eq!(read.swagger, "2.0");
        let path = read.paths.unwrap().path.remove(0);
        assert_eq!(path.name, "/a");
        let patch = path.value.unwrap().patch.unwrap();
        let named = patch.parameters[0].parameter.clone().unwrap();
        assert_eq!(named.other.unwrap().query.unwrap().name, "q");
        let yaml = patch.vendor_extension[0].value.clone().unwrap().yaml;
        assert_eq!(yaml, r#""patch""#);
        let definition = &read.definitions.unwrap().additional_properties[0];
        let properties = definition.value.clone().unwrap().properties.unwrap();
        let list = properties.additional_properties[0].value.clone().unwrap();
        let item = list.items.unwrap().schema.unwrap();
        assert_eq!(item.r#type.unwrap().value, ["string"]);
    }
}
