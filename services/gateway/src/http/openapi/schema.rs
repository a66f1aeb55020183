//! JSON schemas of messages, with Kubernetes' extensions for the merging of lists.

use prost_reflect::{Kind as Type, MessageDescriptor};
use serde_json::{Map, Value, json};
use setpoint_codec::rules::{self, Field, Message};
use setpoint_codec::{Kind, kinds};
use setpoint_proto::options::{List, Patch};

use super::comments;

/// Schemas by name.
pub(super) type Schemas = Map<String, Value>;

/// The schema of errors and of responses to deletions.
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

/// Adds the schemas of a kind, of its list, and of the messages that they contain.
pub(super) fn add_kind(schemas: &mut Schemas, kind: &'static Kind) {
    add_message(schemas, &kind.message);
    if kind.stored().is_stored() {
        schemas.insert(list_name(kind), list(kind));
        let metadata = kind
            .message
            .parent_pool()
            .get_message_by_name("k8s.meta.v1.ListMeta");
        metadata
            .iter()
            .for_each(|metadata| add_message(schemas, metadata));
    }
}

/// Returns a reference to a schema.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Returns the name of a kind's schema, as in Kubernetes' own documents.
pub(super) fn kind_name(kind: &Kind) -> String {
    name(kind.message.full_name())
}

/// Returns the name of the schema of a kind's list.
pub(super) fn list_name(kind: &Kind) -> String {
    kind_name(kind) + "List"
}

/// Returns the kind as the extension `x-kubernetes-group-version-kind`.
pub(super) fn group_version_kind(kind: &Kind, name: &str) -> Value {
    json!({ "group": kind.group, "version": kind.version, "kind": name })
}

fn name(message: &str) -> String {
    match message {
        "k8s.meta.v1.Quantity" => "io.k8s.apimachinery.pkg.api.resource.Quantity".into(),
        "k8s.meta.v1.IntOrString" => "io.k8s.apimachinery.pkg.util.intstr.IntOrString".into(),
        "k8s.meta.v1.RawExtension" => "io.k8s.apimachinery.pkg.runtime.RawExtension".into(),
        other => match other.strip_prefix("k8s.meta.") {
            Some(rest) => format!("io.k8s.apimachinery.pkg.apis.meta.{rest}"),
            None => format!("io.k8s.api.{}", other.trim_start_matches("k8s.")),
        },
    }
}

fn add_message(schemas: &mut Schemas, message: &MessageDescriptor) {
    let name = name(message.full_name());
    if schemas.contains_key(&name) {
        return;
    }
    if let Some(scalar) = scalar(message.full_name()) {
        schemas.insert(name, scalar);
        return;
    }
    let Some(rules) = rules::message(message.full_name()) else {
        return;
    };
    // Inserted before its fields are visited, since a message may contain itself.
    schemas.insert(name.clone(), Value::Null);
    schemas.insert(name, object(message, rules));
    for field in rules.fields() {
        if let Type::Message(message) = &field.element {
            add_message(schemas, message);
        }
    }
}

fn object(message: &MessageDescriptor, rules: &'static Message) -> Value {
    let fields = rules
        .fields()
        .map(|field| (field.descriptor.json_name().to_owned(), property(field)));
    let mut properties: Map<String, Value> = fields.collect();
    let mut schema = json!({ "type": "object" });
    if let Some(text) = comments::of_message(message) {
        schema["description"] = text.into();
    }
    let always = rules.fields().filter(|field| field.always);
    let mut required: Vec<_> = always.map(|field| field.descriptor.json_name()).collect();
    required.sort_unstable();
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    if rules.has_kind {
        add_type(&mut schema, &mut properties, message);
    }
    schema["properties"] = properties.into();
    if rules.is_atomic {
        schema["x-kubernetes-map-type"] = "atomic".into();
    }
    schema
}

fn add_type(schema: &mut Value, properties: &mut Map<String, Value>, message: &MessageDescriptor) {
    let mut kinds = kinds().with_bodies();
    if let Some(kind) = kinds.find(|kind| kind.message == *message) {
        schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(kind, &kind.kind)]);
    }
    properties.extend(type_properties());
}

fn type_properties() -> Map<String, Value> {
    let api_version = "The group and version of the object.";
    let kind = "The kind of the object.";
    let property = |text| json!({ "type": "string", "description": text });
    Map::from_iter([
        ("apiVersion".into(), property(api_version)),
        ("kind".into(), property(kind)),
    ])
}

fn list(kind: &Kind) -> Value {
    let mut properties = type_properties();
    let items = reference(&kind_name(kind));
    properties.insert("items".into(), json!({ "type": "array", "items": items }));
    properties.insert("metadata".into(), reference(&name("k8s.meta.v1.ListMeta")));
    json!({
        "type": "object",
        "description": format!("A list of {}.", kind.plural),
        "required": ["items"],
        "properties": properties,
        "x-kubernetes-group-version-kind": [group_version_kind(kind, &kind.list_kind())],
    })
}

/// Returns the schema of a message that is not an object in JSON.
fn scalar(message: &str) -> Option<Value> {
    Some(match message {
        "k8s.meta.v1.Time" | "k8s.meta.v1.MicroTime" => {
            json!({ "type": "string", "format": "date-time" })
        }
        "k8s.meta.v1.Quantity" => json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }),
        "k8s.meta.v1.IntOrString" => json!({
            "format": "int-or-string",
            "oneOf": [{ "type": "integer" }, { "type": "string" }],
        }),
        "k8s.meta.v1.FieldsV1" | "k8s.meta.v1.RawExtension" => json!({ "type": "object" }),
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

fn property(field: &Field) -> Value {
    let element = element(&field.element);
    let mut property = match (field.descriptor.is_list(), field.descriptor.is_map()) {
        (true, _) => json!({ "type": "array", "items": element }),
        (_, true) => json!({ "type": "object", "additionalProperties": element }),
        // A `$ref` must not have siblings.
        _ if element.get("$ref").is_some() => json!({ "allOf": [element] }),
        _ => element,
    };
    if let Some(text) = comments::of_field(&field.descriptor) {
        property["description"] = text.into();
    }
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
