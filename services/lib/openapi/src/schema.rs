//! JSON schemas of messages, with Kubernetes' extensions for the merging of lists.

use prost_reflect::{Kind as Type, MessageDescriptor};
use serde_json::{Map, Value, json};
use setpoint_codec::rules::{self, Field, Message};
use setpoint_codec::{Definition, Kind, kinds};
use setpoint_proto::options::{List, Patch};

use super::{comments, release};

/// Schemas by name.
pub(super) type Schemas = Map<String, Value>;

/// The schema of errors and of responses to deletions.
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

/// Adds the schemas of a kind, of its list, and of the messages that they contain.
pub(super) fn add_kind(schemas: &mut Schemas, kind: &'static Kind) {
    add_message(schemas, &kind.message);
    if kind.stored().is_stored() || kind.is_computed {
        let definition = kind.definition();
        let description = format!("A list of {}.", kind.plural);
        let list = list(kind, &definition, &description);
        schemas.insert(list_name(kind, &definition), list);
        add_named(schemas, kind, LIST_META);
    }
}

/// The messages of the metadata of objects and of lists.
pub(super) const OBJECT_META: &str = "k8s.meta.v1.ObjectMeta";
pub(super) const LIST_META: &str = "k8s.meta.v1.ListMeta";

/// Adds the schema of a message by its name in the pool of a kind's message.
pub(super) fn add_named(schemas: &mut Schemas, kind: &Kind, message: &str) {
    let message = kind.message.parent_pool().get_message_by_name(message);
    message
        .iter()
        .for_each(|message| add_message(schemas, message));
}

/// Returns a reference to a schema.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Returns a reference to the schema of a message, with a description, which must not be beside `$ref`.
pub(super) fn described(message: &str, description: &str) -> Value {
    json!({ "allOf": [reference(&name(message))], "description": description })
}

/// Returns the name of a kind's schema, as in Kubernetes' own documents.
pub(super) fn kind_name(kind: &Kind) -> String {
    match kind.is_custom() {
        true => format!("{}.{}", custom_package(kind), kind.kind),
        false => name(kind.message.full_name()),
    }
}

/// Returns the name of the schema of a kind's list.
pub(super) fn list_name(kind: &Kind, definition: &Definition) -> String {
    match kind.is_custom() {
        true => format!("{}.{}", custom_package(kind), definition.list_kind),
        false => kind_name(kind) + "List",
    }
}

/// Returns the segments of the group in reverse order, and the version, for example `com.example.stable.v1`.
fn custom_package(kind: &Kind) -> String {
    let segments: Vec<_> = kind.group.rsplit('.').collect();
    format!("{}.{}", segments.join("."), kind.version)
}

/// Returns the kind as the extension `x-kubernetes-group-version-kind`.
pub(super) fn group_version_kind(kind: &Kind, name: &str) -> Value {
    json!({ "group": kind.group, "version": kind.version, "kind": name })
}

/// Returns the name of a message's schema.
pub(super) fn name(message: &str) -> String {
    match message {
        "k8s.meta.v1.Quantity" => "io.k8s.apimachinery.pkg.api.resource.Quantity".into(),
        "k8s.meta.v1.IntOrString" => "io.k8s.apimachinery.pkg.util.intstr.IntOrString".into(),
        "k8s.meta.v1.RawExtension" => "io.k8s.apimachinery.pkg.runtime.RawExtension".into(),
        other => {
            let rest = other.trim_start_matches("k8s.");
            let folder = match rest.split('.').next() {
                Some("meta") => "io.k8s.apimachinery.pkg.apis",
                Some("apiextensions") => "io.k8s.apiextensions-apiserver.pkg.apis",
                Some("apiregistration") => "io.k8s.kube-aggregator.pkg.apis",
                _ => "io.k8s.api",
            };
            format!("{folder}.{rest}")
        }
    }
}

fn add_message(schemas: &mut Schemas, message: &MessageDescriptor) {
    let name = name(message.full_name());
    if schemas.contains_key(&name) {
        return;
    }
    if let Some(mut scalar) = scalar(message.full_name()) {
        describe(&mut scalar, comments::of_message(message));
        schemas.insert(name, scalar);
        return;
    }
    let Some(rules) = rules::message(message.full_name()) else {
        return;
    };
    // Inserted before its fields are visited, since a message may contain itself.
    schemas.insert(name.clone(), Value::Null);
    schemas.insert(name, object(message, rules));
    for field in fields(message, rules) {
        if let Type::Message(message) = &field.element {
            add_message(schemas, message);
        }
    }
}

/// Returns the fields that Kubernetes 1.36 has.
fn fields(
    message: &MessageDescriptor,
    rules: &'static Message,
) -> impl Iterator<Item = &'static Field> {
    let fields = rules.fields();
    fields.filter(|field| !release::is_later(message.full_name(), field.descriptor.json_name()))
}

fn object(message: &MessageDescriptor, rules: &'static Message) -> Value {
    let fields = fields(message, rules).map(|field| {
        let name = field.descriptor.json_name();
        let values = release::values(message.full_name(), name);
        (name.to_owned(), property(field, values))
    });
    let mut properties: Map<String, Value> = fields.collect();
    let mut schema = json!({ "type": "object" });
    describe(&mut schema, comments::of_message(message));
    let required = required(message, rules);
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    if rules.has_kind {
        add_type(&mut schema, &mut properties, message);
    }
    // As Kubernetes, omit an empty object.
    if !properties.is_empty() {
        schema["properties"] = properties.into();
    }
    if rules.is_atomic {
        schema["x-kubernetes-map-type"] = "atomic".into();
    }
    schema
}

fn describe(schema: &mut Value, text: Option<&str>) {
    if let Some(text) = text {
        schema["description"] = text.into();
    }
}

fn required(message: &MessageDescriptor, rules: &'static Message) -> Vec<&'static str> {
    if let Some(required) = release::required(message.full_name()) {
        return required.to_vec();
    }
    let always = fields(message, rules).filter(|field| field.always);
    let mut required: Vec<_> = always.map(|field| field.descriptor.json_name()).collect();
    required.sort_unstable();
    required
}

fn add_type(schema: &mut Value, properties: &mut Map<String, Value>, message: &MessageDescriptor) {
    let mut kinds = kinds().with_bodies();
    if let Some(kind) = kinds.find(|kind| kind.message == *message) {
        schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(kind, &kind.kind)]);
    }
    properties.extend(type_properties());
}

/// Returns the properties `apiVersion` and `kind`.
pub(super) fn type_properties() -> Map<String, Value> {
    let property = |text| json!({ "type": "string", "description": text });
    Map::from_iter([
        ("apiVersion".into(), property(API_VERSION)),
        ("kind".into(), property(KIND)),
    ])
}

/// The texts begin with the words that upstream's conformance tests look for.
const API_VERSION: &str = "APIVersion defines the schema that the object is written in: `v1` for the core group, otherwise the group, a slash and the version.";
const KIND: &str = "Kind is the name of the object's type, in CamelCase. Cannot be changed.";

/// Returns the schema of a kind's list.
pub(super) fn list(kind: &Kind, definition: &Definition, description: &str) -> Value {
    let mut properties = type_properties();
    let items = reference(&kind_name(kind));
    let listed = format!(
        "List of {}: all that were asked for, or a page.",
        kind.plural
    );
    let metadata = described(
        LIST_META,
        "The version of the state that is shown, and the token of the next page.",
    );
    let listed = json!({ "type": "array", "items": items, "description": listed });
    properties.insert("items".into(), listed);
    properties.insert("metadata".into(), metadata);
    json!({
        "type": "object",
        "description": description,
        "required": ["items"],
        "properties": properties,
        "x-kubernetes-group-version-kind": [group_version_kind(kind, &definition.list_kind)],
    })
}

/// Returns the schema of a message that is not an object in JSON.
fn scalar(message: &str) -> Option<Value> {
    Some(match message {
        "k8s.meta.v1.Time" | "k8s.meta.v1.MicroTime" => {
            json!({ "type": "string", "format": "date-time" })
        }
        "k8s.meta.v1.Duration" => json!({ "type": "string" }),
        "k8s.meta.v1.Quantity" => json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }),
        "k8s.meta.v1.IntOrString" => json!({
            "format": "int-or-string",
            "oneOf": [{ "type": "integer" }, { "type": "string" }],
        }),
        "k8s.meta.v1.FieldsV1" | "k8s.meta.v1.RawExtension" => json!({ "type": "object" }),
        // Values of several types have none.
        "k8s.apiextensions.v1.JSON"
        | "k8s.apiextensions.v1.JSONSchemaPropsOrArray"
        | "k8s.apiextensions.v1.JSONSchemaPropsOrBool"
        | "k8s.apiextensions.v1.JSONSchemaPropsOrStringArray" => json!({}),
        "k8s.meta.v1.Verbs"
        | "k8s.authentication.v1.AttestationValue"
        | "k8s.authentication.v1.ExtraValue"
        | "k8s.authorization.v1.ExtraValue"
        | "k8s.certificates.v1.ExtraValue" => {
            json!({ "type": "array", "items": { "type": "string" } })
        }
        _ => return None,
    })
}

fn property(field: &Field, values: Option<&[&str]>) -> Value {
    let mut element = element(&field.element);
    if let Some(values) = values {
        element["enum"] = values.into();
    }
    let mut property = match (field.descriptor.is_list(), field.descriptor.is_map()) {
        (true, _) => json!({ "type": "array", "items": element }),
        (_, true) => json!({ "type": "object", "additionalProperties": element }),
        // A `$ref` must not have siblings.
        _ if element.get("$ref").is_some() => json!({ "allOf": [element] }),
        _ => element,
    };
    describe(&mut property, comments::of_field(&field.descriptor));
    if field.value {
        property["default"] = json!({});
    }
    add_merging(&mut property, field);
    property
}

fn element(of: &Type) -> Value {
    match of {
        Type::Message(message) => reference(&name(message.full_name())),
        Type::Bool => json!({ "type": "boolean" }),
        Type::Int32 => json!({ "type": "integer", "format": "int32" }),
        Type::Int64 => json!({ "type": "integer", "format": "int64" }),
        Type::Double => json!({ "type": "number", "format": "double" }),
        Type::Bytes => json!({ "type": "string", "format": "byte" }),
        _ => json!({ "type": "string" }),
    }
}

fn add_merging(property: &mut Value, field: &Field) {
    let list = match field.list() {
        List::Granular => None,
        List::Atomic => Some("atomic"),
        List::Set => Some("set"),
        List::Map => Some("map"),
    };
    if let Some(list) = list {
        let what = if field.descriptor.is_list() {
            "list"
        } else {
            "map"
        };
        property[format!("x-kubernetes-{what}-type")] = list.into();
    }
    if !field.key.is_empty() {
        property["x-kubernetes-list-map-keys"] = field.key.clone().into();
    }
    let strategies: Vec<_> = field.patch().filter_map(strategy).collect();
    if !strategies.is_empty() {
        property["x-kubernetes-patch-strategy"] = strategies.join(",").into();
    }
    if !field.merge_key.is_empty() {
        property["x-kubernetes-patch-merge-key"] = field.merge_key.as_str().into();
    }
}

fn strategy(patch: Patch) -> Option<&'static str> {
    match patch {
        Patch::Unspecified => None,
        Patch::Merge => Some("merge"),
        Patch::Replace => Some("replace"),
        Patch::RetainKeys => Some("retainKeys"),
    }
}
