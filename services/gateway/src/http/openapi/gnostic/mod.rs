//! The protobuf encoding of OpenAPI v2 that clients of Kubernetes read (gnostic's `OpenAPIv2.proto`), as far as the document
//! needs it. A `oneof` of which only one field is used is that field.

mod messages;

use prost::Message as _;
use serde_json::{Map, Value};

use messages::{
    AdditionalProperties, BodyParameter, Document, Info, Items, ItemsItem, NamedAny,
    NamedParameter, NamedParameters, NamedPathItem, NamedResponseValue, NamedSchema,
    NonBodyParameter, Operation, Parameter, ParametersItem, PathItem, PathParameter, Paths,
    Properties, QueryParameter, Reference, Response, ResponseValue, Responses, Schema, SchemaItem,
    TypeItem, Yaml,
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
        parameters: named_parameters(&document["parameters"]),
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
        options: operation("options"),
        head: operation("head"),
        patch: operation("patch"),
        parameters: parameters(&path["parameters"]),
        vendor_extension: extensions(path),
    }
}

fn operation(operation: &Value) -> Operation {
    let responses = fields(&operation["responses"]).map(|(code, value)| NamedResponseValue {
        name: code.clone(),
        value: Some(response(value)),
    });
    Operation {
        tags: texts(&operation["tags"]),
        summary: text(&operation["summary"]),
        description: text(&operation["description"]),
        operation_id: text(&operation["operationId"]),
        produces: texts(&operation["produces"]),
        consumes: texts(&operation["consumes"]),
        parameters: parameters(&operation["parameters"]),
        responses: Some(Responses {
            response_code: responses.collect(),
        }),
        schemes: texts(&operation["schemes"]),
        deprecated: flag(&operation["deprecated"]),
        vendor_extension: extensions(operation),
    }
}

fn response(response: &Value) -> ResponseValue {
    let reference = reference(response);
    let of = || Response {
        description: text(&response["description"]),
        schema: response.get("schema").map(item),
        vendor_extension: extensions(response),
    };
    ResponseValue {
        response: reference.is_none().then(of),
        reference,
    }
}

fn reference(of: &Value) -> Option<Reference> {
    let reference = of["$ref"].as_str()?;
    Some(Reference {
        reference: reference.to_owned(),
        description: text(&of["description"]),
    })
}

fn parameters(list: &Value) -> Vec<ParametersItem> {
    let items = elements(list).map(|one| {
        let reference = reference(one);
        ParametersItem {
            parameter: reference.is_none().then(|| parameter(one)),
            reference,
        }
    });
    items.collect()
}

fn named_parameters(of: &Value) -> Option<NamedParameters> {
    let named = fields(of).map(|(name, value)| NamedParameter {
        name: name.clone(),
        value: Some(parameter(value)),
    });
    let additional_properties: Vec<_> = named.collect();
    (!additional_properties.is_empty()).then_some(NamedParameters {
        additional_properties,
    })
}

fn parameter(parameter: &Value) -> Parameter {
    let mut other = NonBodyParameter::default();
    match parameter["in"].as_str() {
        Some("body") => {
            return Parameter {
                body: Some(body(parameter)),
                other: None,
            };
        }
        Some("path") => other.path = Some(in_path(parameter)),
        Some("header") => other.header = Some(in_path(parameter)),
        Some("formData") => other.form = Some(in_query(parameter)),
        _ => other.query = Some(in_query(parameter)),
    }
    Parameter {
        body: None,
        other: Some(other),
    }
}

fn body(parameter: &Value) -> BodyParameter {
    BodyParameter {
        description: text(&parameter["description"]),
        name: text(&parameter["name"]),
        r#in: text(&parameter["in"]),
        required: flag(&parameter["required"]),
        schema: Some(schema(&parameter["schema"])),
    }
}

fn in_path(parameter: &Value) -> PathParameter {
    PathParameter {
        required: flag(&parameter["required"]),
        r#in: text(&parameter["in"]),
        description: text(&parameter["description"]),
        name: text(&parameter["name"]),
        r#type: text(&parameter["type"]),
        format: text(&parameter["format"]),
        items: parameter.get("items").map(items_of_parameter),
        collection_format: text(&parameter["collectionFormat"]),
        unique_items: flag(&parameter["uniqueItems"]),
        r#enum: elements(&parameter["enum"]).map(yaml).collect(),
    }
}

fn in_query(parameter: &Value) -> QueryParameter {
    let of = in_path(parameter);
    QueryParameter {
        required: of.required,
        r#in: of.r#in,
        description: of.description,
        name: of.name,
        r#type: of.r#type,
        format: of.format,
        items: of.items,
        collection_format: of.collection_format,
        unique_items: of.unique_items,
        r#enum: of.r#enum,
    }
}

fn items_of_parameter(items: &Value) -> Items {
    let inner = items.get("items").map(items_of_parameter);
    Items {
        r#type: text(&items["type"]),
        format: text(&items["format"]),
        items: inner.map(Box::new),
    }
}

fn schema(schema: &Value) -> Schema {
    let of = schema.get("type").filter(|of| !of.is_null());
    let of = of.map(|of| TypeItem {
        value: one_or_many(of).map(text).collect(),
    });
    let items = schema.get("items").map(|items| ItemsItem {
        schema: one_or_many(items).map(self::schema).collect(),
    });
    let number = |name: &str| schema[name].as_f64().unwrap_or_default();
    let whole = |name: &str| schema[name].as_i64().unwrap_or_default();
    let others = schema.get("additionalProperties");
    Schema {
        reference: text(&schema["$ref"]),
        format: text(&schema["format"]),
        title: text(&schema["title"]),
        description: text(&schema["description"]),
        default: schema.get("default").map(yaml),
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
        items,
        all_of: elements(&schema["allOf"]).map(self::schema).collect(),
        properties: schema.get("properties").and_then(properties),
        read_only: flag(&schema["readOnly"]),
        example: schema.get("example").map(yaml),
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

fn one_or_many(of: &Value) -> std::slice::Iter<'_, Value> {
    match of {
        Value::Array(many) => many.iter(),
        one => std::slice::from_ref(one).iter(),
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
        let item = list.items.unwrap().schema.remove(0);
        assert_eq!(item.r#type.unwrap().value, ["string"]);
        assert_eq!(item.r#enum[0].yaml, r#""c""#);
    }

    #[test]
    fn parameters_may_be_references_and_of_every_place() {
        let document = json!({
            "paths": { "/a": { "head": { "parameters": [{ "$ref": "#/parameters/b" }], "responses": {} } } },
            "parameters": {
                "b": { "in": "header", "name": "b", "type": "array", "items": { "type": "string" } },
                "c": { "in": "formData", "name": "c", "description": "text" },
            },
        });
        let read = Document::decode(&*encode(&document)).unwrap();
        let path = read.paths.unwrap().path.remove(0).value.unwrap();
        let reference = path.head.unwrap().parameters[0].reference.clone().unwrap();
        assert_eq!(reference.reference, "#/parameters/b");
        let named = read.parameters.unwrap().additional_properties;
        let other = |at: usize| named[at].value.clone().unwrap().other.unwrap();
        assert_eq!(other(0).header.unwrap().items.unwrap().r#type, "string");
        assert_eq!(other(1).form.unwrap().description, "text");
    }
}
