//! The messages of `OpenAPIv2.proto`.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Document {
    #[prost(string, tag = "1")]
    pub(super) swagger: String,
    #[prost(message, optional, tag = "2")]
    pub(super) info: Option<Info>,
    #[prost(message, optional, tag = "8")]
    pub(super) paths: Option<Paths>,
    #[prost(message, optional, tag = "9")]
    pub(super) definitions: Option<Properties>,
    #[prost(message, optional, tag = "10")]
    pub(super) parameters: Option<NamedParameters>,
}

/// Parameters by name.
#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedParameters {
    #[prost(message, repeated, tag = "1")]
    pub(super) additional_properties: Vec<NamedParameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedParameter {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<Parameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Info {
    #[prost(string, tag = "1")]
    pub(super) title: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Paths {
    #[prost(message, repeated, tag = "2")]
    pub(super) path: Vec<NamedPathItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedPathItem {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<PathItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PathItem {
    #[prost(message, optional, tag = "2")]
    pub(super) get: Option<Operation>,
    #[prost(message, optional, tag = "3")]
    pub(super) put: Option<Operation>,
    #[prost(message, optional, tag = "4")]
    pub(super) post: Option<Operation>,
    #[prost(message, optional, tag = "5")]
    pub(super) delete: Option<Operation>,
    #[prost(message, optional, tag = "6")]
    pub(super) options: Option<Operation>,
    #[prost(message, optional, tag = "7")]
    pub(super) head: Option<Operation>,
    #[prost(message, optional, tag = "8")]
    pub(super) patch: Option<Operation>,
    #[prost(message, repeated, tag = "9")]
    pub(super) parameters: Vec<ParametersItem>,
    #[prost(message, repeated, tag = "10")]
    pub(super) vendor_extension: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Operation {
    #[prost(string, repeated, tag = "1")]
    pub(super) tags: Vec<String>,
    #[prost(string, tag = "2")]
    pub(super) summary: String,
    #[prost(string, tag = "3")]
    pub(super) description: String,
    #[prost(string, tag = "5")]
    pub(super) operation_id: String,
    #[prost(string, repeated, tag = "6")]
    pub(super) produces: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    pub(super) consumes: Vec<String>,
    #[prost(message, repeated, tag = "8")]
    pub(super) parameters: Vec<ParametersItem>,
    #[prost(message, optional, tag = "9")]
    pub(super) responses: Option<Responses>,
    #[prost(string, repeated, tag = "10")]
    pub(super) schemes: Vec<String>,
    #[prost(bool, tag = "11")]
    pub(super) deprecated: bool,
    #[prost(message, repeated, tag = "13")]
    pub(super) vendor_extension: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ParametersItem {
    #[prost(message, optional, tag = "1")]
    pub(super) parameter: Option<Parameter>,
    #[prost(message, optional, tag = "2")]
    pub(super) reference: Option<Reference>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Reference {
    #[prost(string, tag = "1")]
    pub(super) reference: String,
    #[prost(string, tag = "2")]
    pub(super) description: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Parameter {
    #[prost(message, optional, tag = "1")]
    pub(super) body: Option<BodyParameter>,
    #[prost(message, optional, tag = "2")]
    pub(super) other: Option<NonBodyParameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BodyParameter {
    #[prost(string, tag = "1")]
    pub(super) description: String,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(string, tag = "3")]
    pub(super) r#in: String,
    #[prost(bool, tag = "4")]
    pub(super) required: bool,
    #[prost(message, optional, tag = "5")]
    pub(super) schema: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NonBodyParameter {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<PathParameter>,
    #[prost(message, optional, tag = "2")]
    pub(super) form: Option<QueryParameter>,
    #[prost(message, optional, tag = "3")]
    pub(super) query: Option<QueryParameter>,
    #[prost(message, optional, tag = "4")]
    pub(super) path: Option<PathParameter>,
}

/// A parameter in the query, or in a form.
#[derive(Clone, PartialEq, Message)]
pub(super) struct QueryParameter {
    #[prost(bool, tag = "1")]
    pub(super) required: bool,
    #[prost(string, tag = "2")]
    pub(super) r#in: String,
    #[prost(string, tag = "3")]
    pub(super) description: String,
    #[prost(string, tag = "4")]
    pub(super) name: String,
    #[prost(string, tag = "6")]
    pub(super) r#type: String,
    #[prost(string, tag = "7")]
    pub(super) format: String,
    #[prost(message, optional, tag = "8")]
    pub(super) items: Option<Items>,
    #[prost(string, tag = "9")]
    pub(super) collection_format: String,
    #[prost(bool, tag = "20")]
    pub(super) unique_items: bool,
    #[prost(message, repeated, tag = "21")]
    pub(super) r#enum: Vec<Yaml>,
}

/// A parameter in the path, or in a header.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PathParameter {
    #[prost(bool, tag = "1")]
    pub(super) required: bool,
    #[prost(string, tag = "2")]
    pub(super) r#in: String,
    #[prost(string, tag = "3")]
    pub(super) description: String,
    #[prost(string, tag = "4")]
    pub(super) name: String,
    #[prost(string, tag = "5")]
    pub(super) r#type: String,
    #[prost(string, tag = "6")]
    pub(super) format: String,
    #[prost(message, optional, tag = "7")]
    pub(super) items: Option<Items>,
    #[prost(string, tag = "8")]
    pub(super) collection_format: String,
    #[prost(bool, tag = "19")]
    pub(super) unique_items: bool,
    #[prost(message, repeated, tag = "20")]
    pub(super) r#enum: Vec<Yaml>,
}

/// The items of a parameter that is a list.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Items {
    #[prost(string, tag = "1")]
    pub(super) r#type: String,
    #[prost(string, tag = "2")]
    pub(super) format: String,
    #[prost(message, optional, boxed, tag = "3")]
    pub(super) items: Option<Box<Items>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Responses {
    #[prost(message, repeated, tag = "1")]
    pub(super) response_code: Vec<NamedResponseValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedResponseValue {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<ResponseValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResponseValue {
    #[prost(message, optional, tag = "1")]
    pub(super) response: Option<Response>,
    #[prost(message, optional, tag = "2")]
    pub(super) reference: Option<Reference>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Response {
    #[prost(string, tag = "1")]
    pub(super) description: String,
    #[prost(message, optional, tag = "2")]
    pub(super) schema: Option<SchemaItem>,
    #[prost(message, repeated, tag = "5")]
    pub(super) vendor_extension: Vec<NamedAny>,
}

/// A schema where the original has an alternative to one.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SchemaItem {
    #[prost(message, optional, boxed, tag = "1")]
    pub(super) schema: Option<Box<Schema>>,
}

/// The schema of all items, or those of each.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ItemsItem {
    #[prost(message, repeated, tag = "1")]
    pub(super) schema: Vec<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Schema {
    #[prost(string, tag = "1")]
    pub(super) reference: String,
    #[prost(string, tag = "2")]
    pub(super) format: String,
    #[prost(string, tag = "3")]
    pub(super) title: String,
    #[prost(string, tag = "4")]
    pub(super) description: String,
    #[prost(message, optional, tag = "5")]
    pub(super) default: Option<Yaml>,
    #[prost(double, tag = "6")]
    pub(super) multiple_of: f64,
    #[prost(double, tag = "7")]
    pub(super) maximum: f64,
    #[prost(bool, tag = "8")]
    pub(super) exclusive_maximum: bool,
    #[prost(double, tag = "9")]
    pub(super) minimum: f64,
    #[prost(bool, tag = "10")]
    pub(super) exclusive_minimum: bool,
    #[prost(int64, tag = "11")]
    pub(super) max_length: i64,
    #[prost(int64, tag = "12")]
    pub(super) min_length: i64,
    #[prost(string, tag = "13")]
    pub(super) pattern: String,
    #[prost(int64, tag = "14")]
    pub(super) max_items: i64,
    #[prost(int64, tag = "15")]
    pub(super) min_items: i64,
    #[prost(bool, tag = "16")]
    pub(super) unique_items: bool,
    #[prost(int64, tag = "17")]
    pub(super) max_properties: i64,
    #[prost(int64, tag = "18")]
    pub(super) min_properties: i64,
    #[prost(string, repeated, tag = "19")]
    pub(super) required: Vec<String>,
    #[prost(message, repeated, tag = "20")]
    pub(super) r#enum: Vec<Yaml>,
    #[prost(message, optional, boxed, tag = "21")]
    pub(super) additional_properties: Option<Box<AdditionalProperties>>,
    #[prost(message, optional, tag = "22")]
    pub(super) r#type: Option<TypeItem>,
    #[prost(message, optional, tag = "23")]
    pub(super) items: Option<ItemsItem>,
    #[prost(message, repeated, tag = "24")]
    pub(super) all_of: Vec<Schema>,
    #[prost(message, optional, tag = "25")]
    pub(super) properties: Option<Properties>,
    #[prost(bool, tag = "27")]
    pub(super) read_only: bool,
    #[prost(message, optional, tag = "30")]
    pub(super) example: Option<Yaml>,
    #[prost(message, repeated, tag = "31")]
    pub(super) vendor_extension: Vec<NamedAny>,
}

/// A schema, or whether there are others at all.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AdditionalProperties {
    #[prost(message, optional, boxed, tag = "1")]
    pub(super) schema: Option<Box<Schema>>,
    #[prost(bool, optional, tag = "2")]
    pub(super) boolean: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TypeItem {
    #[prost(string, repeated, tag = "1")]
    pub(super) value: Vec<String>,
}

/// Schemas by name.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Properties {
    #[prost(message, repeated, tag = "1")]
    pub(super) additional_properties: Vec<NamedSchema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedSchema {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedAny {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<Yaml>,
}

/// A value as YAML, of which JSON is a subset.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Yaml {
    #[prost(string, tag = "2")]
    pub(super) yaml: String,
}
