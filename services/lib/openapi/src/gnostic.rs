//! The protobuf encoding of OpenAPI v2 that clients of Kubernetes read (gnostic's `OpenAPIv2.proto`), as far as the
//! document needs it.

use prost::Message as _;
use serde_json::{Map, Value};
use setpoint_proto::openapi_v2::additional_properties_item::Oneof as AdditionalProperties;
use setpoint_proto::openapi_v2::non_body_parameter::Oneof as NonBody;
use setpoint_proto::openapi_v2::parameter::Oneof as ParameterKind;
use setpoint_proto::openapi_v2::parameters_item::Oneof as ParameterOrReference;
use setpoint_proto::openapi_v2::response_value::Oneof as ResponseOrReference;
use setpoint_proto::openapi_v2::schema_item::Oneof as SchemaOnly;
use setpoint_proto::openapi_v2::{
    AdditionalPropertiesItem, Any, BodyParameter, Definitions, Document,
    FormDataParameterSubSchema, HeaderParameterSubSchema, Info, ItemsItem, JsonReference, NamedAny,
    NamedParameter, NamedPathItem, NamedResponseValue, NamedSchema, NonBodyParameter, Operation,
    Parameter, ParameterDefinitions, ParametersItem, PathItem, PathParameterSubSchema, Paths,
    PrimitivesItems, Properties, QueryParameterSubSchema, Response, ResponseValue, Responses,
    Schema, SchemaItem, TypeItem,
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
        definitions: Some(Definitions {
            additional_properties: schemas(&document["definitions"]),
        }),
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
    let of = || {
        ResponseOrReference::Response(Response {
            description: text(&response["description"]),
            schema: response.get("schema").map(item),
            vendor_extension: extensions(response),
        })
    };
    let reference = reference(response).map(ResponseOrReference::JsonReference);
    ResponseValue {
        oneof: Some(reference.unwrap_or_else(of)),
    }
}

fn reference(of: &Value) -> Option<JsonReference> {
    let reference = of["$ref"].as_str()?;
    Some(JsonReference {
        r#ref: reference.to_owned(),
        description: text(&of["description"]),
    })
}

fn parameters(list: &Value) -> Vec<ParametersItem> {
    let items = elements(list).map(|one| {
        let reference = reference(one).map(ParameterOrReference::JsonReference);
        let of = || ParameterOrReference::Parameter(parameter(one));
        ParametersItem {
            oneof: Some(reference.unwrap_or_else(of)),
        }
    });
    items.collect()
}

fn named_parameters(of: &Value) -> Option<ParameterDefinitions> {
    let named = fields(of).map(|(name, value)| NamedParameter {
        name: name.clone(),
        value: Some(parameter(value)),
    });
    let additional_properties: Vec<_> = named.collect();
    (!additional_properties.is_empty()).then_some(ParameterDefinitions {
        additional_properties,
    })
}

fn parameter(parameter: &Value) -> Parameter {
    let other = match parameter["in"].as_str() {
        Some("body") => {
            return Parameter {
                oneof: Some(ParameterKind::BodyParameter(body(parameter))),
            };
        }
        Some("path") => NonBody::PathParameterSubSchema(in_path(parameter)),
        Some("header") => NonBody::HeaderParameterSubSchema(in_header(parameter)),
        Some("formData") => NonBody::FormDataParameterSubSchema(in_form(parameter)),
        _ => NonBody::QueryParameterSubSchema(in_query(parameter)),
    };
    let other = NonBodyParameter { oneof: Some(other) };
    Parameter {
        oneof: Some(ParameterKind::NonBodyParameter(other)),
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

/// Defines a function for a message of parameters: the messages have the same fields with other numbers.
macro_rules! parameter_in {
    ($name:ident, $message:ident) => {
        fn $name(parameter: &Value) -> $message {
            $message {
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
    };
}
parameter_in!(in_path, PathParameterSubSchema);
parameter_in!(in_header, HeaderParameterSubSchema);
parameter_in!(in_form, FormDataParameterSubSchema);
parameter_in!(in_query, QueryParameterSubSchema);

fn items_of_parameter(items: &Value) -> PrimitivesItems {
    let inner = items.get("items").map(items_of_parameter);
    PrimitivesItems {
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
        r#ref: text(&schema["$ref"]),
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
        properties: schema.get("properties").map(properties),
        read_only: flag(&schema["readOnly"]),
        example: schema.get("example").map(yaml),
        vendor_extension: extensions(schema),
    }
}

fn additional_properties(of: &Value) -> AdditionalPropertiesItem {
    let one = match of.as_bool() {
        Some(boolean) => AdditionalProperties::Boolean(boolean),
        None => AdditionalProperties::Schema(schema(of).into()),
    };
    AdditionalPropertiesItem { oneof: Some(one) }
}

fn item(of: &Value) -> SchemaItem {
    SchemaItem {
        oneof: Some(SchemaOnly::Schema(schema(of))),
    }
}

fn properties(of: &Value) -> Properties {
    Properties {
        additional_properties: schemas(of),
    }
}

fn schemas(of: &Value) -> Vec<NamedSchema> {
    let named = fields(of).map(|(name, value)| NamedSchema {
        name: name.clone(),
        value: Some(schema(value)),
    });
    named.collect()
}

fn extensions(of: &Value) -> Vec<NamedAny> {
    let extensions = fields(of).filter(|(name, _)| name.starts_with("x-"));
    let named = extensions.map(|(name, value)| NamedAny {
        name: name.clone(),
        value: Some(yaml(value)),
    });
    named.collect()
}

fn yaml(value: &Value) -> Any {
    Any {
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

    fn other(parameter: &Parameter) -> &NonBody {
        match &parameter.oneof {
            Some(ParameterKind::NonBodyParameter(other)) => other.oneof.as_ref().unwrap(),
            other => panic!("{other:?}"),
        }
    }

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
        let Some(ParameterOrReference::Parameter(named)) = &patch.parameters[0].oneof else {
            panic!("{:?}", patch.parameters);
        };
        let NonBody::QueryParameterSubSchema(query) = other(named) else {
            panic!("{named:?}");
        };
        assert_eq!(query.name, "q");
        let yaml = patch.vendor_extension[0].value.clone().unwrap().yaml;
        assert_eq!(yaml, r#""patch""#);
        let definition = &read.definitions.unwrap().additional_properties[0];
        let schema = definition.value.clone().unwrap();
        let others = schema.additional_properties.unwrap().oneof;
        assert_eq!(others, Some(AdditionalProperties::Boolean(true)));
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
        let parameters = path.head.unwrap().parameters;
        let Some(ParameterOrReference::JsonReference(reference)) = &parameters[0].oneof else {
            panic!("{parameters:?}");
        };
        assert_eq!(reference.r#ref, "#/parameters/b");
        let named = read.parameters.unwrap().additional_properties;
        let [b, c] = [0, 1].map(|at| other(named[at].value.as_ref().unwrap()));
        let (NonBody::HeaderParameterSubSchema(b), NonBody::FormDataParameterSubSchema(c)) = (b, c)
        else {
            panic!("{named:?}");
        };
        assert_eq!(b.items.as_ref().unwrap().r#type, "string");
        assert_eq!(c.description, "text");
    }
}
