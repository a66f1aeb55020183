//! The rules for schemas themselves, checked when a definition is written.

mod defaults;
mod extensions;
pub(crate) mod field_path;
mod openapi;
mod structural;

use serde_json::{Map, Value};
use setpoint_cel::Node;

use crate::parse;
use crate::path::Path;
use crate::rules::{self, Tree};
use crate::violation::Violation;

/// The keywords that a schema may have at its root beside a status subresource, in upstream's order and with the names
/// in its message.
const ALLOWED_WITH_STATUS: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    (
        "x-kubernetes-preserve-unknown-fields",
        "XPreserveUnknownFields",
    ),
    ("x-kubernetes-validations", "XValidations"),
];

/// Checks the schema of one version of a definition: that it is structural, has valid extensions, and defaults that are
/// valid themselves.
///
/// `path` is the path of the schema in the definition, for example `spec.versions[0].schema.openAPIV3Schema`;
/// `has_status`: the version has a status subresource. The schema is acceptable if no violation is returned.
pub fn validate_definition(json: &Value, path: &str, has_status: bool) -> Vec<Violation> {
    let path = Path::new(path);
    let node = match parse::parse(json, &path) {
        Ok(node) => node,
        Err(problems) => return problems,
    };
    let mut found = root(json, &path, has_status);
    let mut structure = structural::check(&node, &path);
    if structure.is_empty() {
        structure = defaults::check(&node, &path);
    }
    found.extend(structure);
    found.extend(openapi::check(json, &node, &path));
    // The types of rules are those of a schema that is valid otherwise.
    if found.is_empty()
        && let Some(tree) = Tree::compile(&node, true)
    {
        found = rules::check_definition(&tree, &node, &path);
        if found.is_empty() {
            found = rules::check_defaults(&tree, &node, &path);
        }
    }
    found
}

fn root(json: &Value, path: &Path<'_>, has_status: bool) -> Vec<Violation> {
    let mut found = Vec::new();
    let Some(fields) = json.as_object() else {
        return found;
    };
    if has_status {
        found.extend(beside_status(fields, path));
    }
    if fields.get("nullable") == Some(&Value::Bool(true)) {
        let detail = "nullable cannot be true at the root";
        found.push(Violation::forbidden(&path.field("nullable"), detail));
    }
    found
}

fn beside_status(fields: &Map<String, Value>, path: &Path<'_>) -> Option<Violation> {
    let schema_type = fields
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !["", "object"].contains(&schema_type) {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        return Some(Violation::invalid(&path.field("type"), schema_type, detail));
    }
    let allowed = |name: &String| ALLOWED_WITH_STATUS.iter().any(|(known, _)| known == name);
    let mut others = fields
        .iter()
        .filter(|(name, value)| !allowed(name) && !is_empty(value));
    others.next()?;
    let names: Vec<_> = ALLOWED_WITH_STATUS.iter().map(|(_, name)| *name).collect();
    let names = names.join(" ");
    let detail = format!(
        "only [{names}] fields are allowed at the root of the schema if the status subresource is enabled"
    );
    Some(Violation::invalid(path, fields.clone(), detail))
}

/// Whether a keyword has the value that it has when it is missing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Whether a schema says nothing but its type; `but_properties`: it may have fields.
fn is_bare(node: &Node, schema_type: &str, but_properties: bool) -> bool {
    let texts = [&node.title, &node.description, &node.format];
    let flags = [
        node.nullable,
        node.preserve_unknown_fields,
        node.int_or_string,
        node.embedded_resource,
    ];
    let structure = node.additional_properties.is_none()
        && node.items.is_none()
        && (but_properties || node.properties.is_empty());
    let lists = node.declared_list_type.is_none()
        && node.list_map_keys.is_empty()
        && node.declared_map_type.is_none();
    let checks =
        node.enumeration.values().is_empty() && node.required.is_empty() && node.pattern.is_none();
    node.schema_type == schema_type
        && texts.iter().all(|text| text.is_empty())
        && !flags.contains(&true)
        && structure
        && lists
        && checks
        && node.bounds == Default::default()
        && node.junctors().next().is_none()
        && node.rules.is_empty()
}
