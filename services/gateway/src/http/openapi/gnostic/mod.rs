//! The protobuf encoding of OpenAPI v2 that clients of Kubernetes read (gnostic's `OpenAPIv2.proto`), as far as the document
//! needs it. A `oneof` of which only one field is used is that field.

mod messages;

use prost::Message as _;
use serde_json::{Map, Value};

use messages::{
    AdditionalProperties, BodyParameter, Document, Info, NamedAny, NamedPathItem,
    NamedResponseValue, NamedSchema, NonBodyParameter, Operation, Parameter, ParametersItem,
    PathItem, PathParameter, Paths, Properties, QueryParameter, Response, ResponseValue, Responses,
    Schema, SchemaItem, TypeItem, Yaml,
};

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
    let items = elements(list).map(|one| ParametersItem {
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
    let number = |name: &str| schema[name].as_f64().unwrap_or_default();
    let whole = |name: &str| schema[name].as_i64().unwrap_or_default();
    let others = schema.get("additionalProperties");
    Schema {
        reference: text(&schema["$ref"]),
        format: text(&schema["format"]),
        title: text(&schema["title"]),
        description: text(&schema["description"]),
        multiple_of: number("multipleOf"),
        maximum: number("maximum"),
        exclusive_maximum: flag(&schema["exclusiveMaximum"]),
        minimum: number("minimum"),
        exclusive_minimum: flag(&schema["exclusiveMinimum"]),
        max_length: whole("maxLength"),
        min_length: whole("minLength"),
        pattern: text(&schema["pattern"]),
        max_items: whole("maxItems"),
        min_items: whole("minItems"),
        unique_items: flag(&schema["uniqueItems"]),
        max_properties: whole("maxProperties"),
        min_properties: whole("minProperties"),
        required: texts(&schema["required"]),
        r#enum: elements(&schema["enum"]).map(yaml).collect(),
        additional_properties: others.map(additional_properties).map(Box::new),
        r#type: of,
        items: boxed("items"),
        properties: schema.get("properties").and_then(properties),
        vendor_extension: extensions(schema),
    }
}

fn additional_properties(of: &Value) -> AdditionalProperties {
    let boolean = of.as_bool();
    let schema = boolean.is_none().then(|| schema(of).into());
    AdditionalProperties { schema, boolean }
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
        value: Some(yaml(value)),
    });
    named.collect()
}

fn yaml(value: &Value) -> Yaml {
    Yaml {
        yaml: value.to_string(),
    }
}

fn elements(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn fields(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flat_map(Map::iter)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    elements(value).map(text).collect()
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
                "properties": { "b": { "type": "array", "items": { "type": "string", "enum": ["c"] } } },
                "additionalProperties": true,
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
        let schema = definition.value.clone().unwrap();
        let others = schema.additional_properties.unwrap();
        assert_eq!((others.boolean, others.schema), (Some(true), None));
        let properties = schema.properties.unwrap();
        let list = properties.additional_properties[0].value.clone().unwrap();
        let item = list.items.unwrap().schema.unwrap();
        assert_eq!(item.r#type.unwrap().value, ["string"]);
        assert_eq!(item.r#enum[0].yaml, r#""c""#);
    }
}
