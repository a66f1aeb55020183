//! The schemas of custom kinds, from the schemas of their definitions.

mod node;
mod unsupported;

use serde_json::{Map, Value, json};
use setpoint_codec::rest::subresource_kind;
use setpoint_codec::{Definition, Kind};

use super::schema::{self, Schemas};

/// The version of OpenAPI that a schema is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A schema of v3 without the features that v2 lacks.
    V2,
    V3,
}

const KIND: &str = "x-kubernetes-group-version-kind";
const SELECTABLE: &str = "x-kubernetes-selectable-fields";
/// The texts begin with the words that upstream's conformance tests look for.
const METADATA: &str = "Standard object's metadata. Name, labels, annotations and others.";
const LIST_METADATA: &str =
    "Standard list metadata. The version of the state, and the token of the next page.";

/// Adds the schemas of a kind and of its list.
pub(super) fn add_kind(
    schemas: &mut Schemas,
    kind: &'static Kind,
    definition: &Definition,
    form: Form,
) {
    let mut object = object(definition, form);
    object[KIND] = json!([schema::group_version_kind(kind, &kind.kind)]);
    let mut list = list(kind, definition);
    if !definition.selectable.is_empty() {
        let fields = definition.selectable.iter();
        let fields = fields.map(|field| json!({ "fieldPath": field.name }));
        let fields: Value = fields.collect();
        object[SELECTABLE] = fields.clone();
        list[SELECTABLE] = fields;
    }
    schemas.insert(schema::kind_name(kind), object);
    schemas.insert(schema::list_name(kind, definition), list);
}

/// Adds the schemas that those of custom kinds and their paths refer to.
pub(super) fn add_references(schemas: &mut Schemas, kind: &'static Kind, definition: &Definition) {
    schema::add_named(schemas, kind, schema::OBJECT_META);
    schema::add_named(schemas, kind, schema::LIST_META);
    let subresources = definition.subresources.iter();
    subresources
        .map(|subresource| subresource_kind(kind, subresource))
        .filter(|of| !of.is_custom())
        .for_each(|of| schema::add_kind(schemas, of));
}

/// Returns the schema of objects. It has properties only if all are known: clients refuse others.
fn object(definition: &Definition, form: Form) -> Value {
    let version = definition.custom.as_ref();
    let declared = version.and_then(|version| version.schema_document());
    let Some(Value::Object(mut schema)) = declared else {
        return json!({ "type": "object" });
    };
    if form == Form::V2 {
        if node::preserves_unknown_fields(&schema) {
            return json!({ "type": "object" });
        }
        node::visit(&mut schema, &mut unsupported::remove);
    }
    node::visit(&mut schema, &mut |schema| unfold(schema, form));
    let properties = node::properties(&mut schema);
    properties.extend(schema::type_properties());
    properties.insert("metadata".into(), metadata());
    Value::Object(schema)
}

/// Writes out what an extension means for a value, as upstream.
fn unfold(schema: &mut Map<String, Value>, form: Form) {
    if !node::preserves_unknown_fields(schema) {
        schema.remove(node::PRESERVE_UNKNOWN_FIELDS);
    }
    if node::is_true(schema, "x-kubernetes-int-or-string") && form == Form::V3 {
        add_alternatives(schema);
    }
    // Clients of v2 would refuse unknown fields beside these.
    let closed = form == Form::V3 || !node::preserves_unknown_fields(schema);
    if node::is_true(schema, "x-kubernetes-embedded-resource") && closed {
        embed(schema);
    }
}

/// Adds the types of an integer or string, unless the schema has them.
fn add_alternatives(schema: &mut Map<String, Value>) {
    let types = json!([{ "type": "integer" }, { "type": "string" }]);
    let within_all = schema
        .get("allOf")
        .is_some_and(|all| all[0]["anyOf"] == types);
    match schema.get("anyOf") {
        Some(any) if *any == types => {}
        _ if within_all => {}
        None => drop(schema.insert("anyOf".into(), types)),
        Some(_) => {
            let all = schema.entry("allOf").or_insert_with(|| json!([]));
            if let Some(all) = all.as_array_mut() {
                all.insert(0, json!({ "anyOf": types }));
            }
        }
    }
}

/// Adds the fields that every object has to the schema of an embedded one.
fn embed(schema: &mut Map<String, Value>) {
    let api_version = "apiVersion defines the schema that the embedded object is written in.";
    let kind = "kind is the name of the embedded object's type, in CamelCase.";
    let property = |text: &str| json!({ "type": "string", "description": text });
    let properties = node::properties(schema);
    properties.insert("apiVersion".into(), property(api_version));
    properties.insert("kind".into(), property(kind));
    properties.insert("metadata".into(), metadata());
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut() {
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|known| known == name) {
                required.push(name.into());
            }
        }
    }
}

fn metadata() -> Value {
    schema::described(schema::OBJECT_META, METADATA)
}

fn list(kind: &Kind, definition: &Definition) -> Value {
    let description = format!("{} is a list of {}", definition.list_kind, kind.kind);
    let mut list = schema::list(kind, definition, &description);
    list["properties"]["metadata"] = schema::described(schema::LIST_META, LIST_METADATA);
    list
}
