//! The shapes of values in objects of custom kinds, by their schemas.

use std::borrow::Cow;

use serde_json::Value;
use setpoint_schema::{ListType, Node};

use super::element::PathElement;
use super::shape::{Shape, not_a_map, without_keys};
use crate::rules;

/// Returns the shape of a field of an object with `kind`, `apiVersion` and metadata, and whether it is declared.
pub(super) fn part<'s>(node: Option<&'s Node>, name: &str) -> Option<(Shape<'s>, bool)> {
    match (name, node) {
        ("apiVersion" | "kind", _) => Some((Shape::Leaf, true)),
        ("metadata", _) => {
            let metadata = rules::message("k8s.meta.v1.ObjectMeta");
            Some((metadata.map_or(Shape::Leaf, Shape::Struct), true))
        }
        (_, Some(node)) => child(node, name),
        (_, None) => Some((Shape::Untyped, false)),
    }
}

/// Returns the shape of a field, and whether the schema declares it; `None` if the schema has no such field.
pub(super) fn child<'s>(node: &'s Node, name: &str) -> Option<(Shape<'s>, bool)> {
    if let Some(property) = node.properties.get(name) {
        return Some((shape_of(property), true));
    }
    match node.values() {
        Some(values) => Some((shape_of(values), false)),
        None => node
            .may_have_unknown_fields
            .then_some((Shape::Untyped, false)),
    }
}

/// Returns the shape of the entries of a list.
pub(super) fn entries(node: &Node) -> Shape<'_> {
    match (node.list_type(), &node.items) {
        (ListType::Map, Some(items)) => shape_of(items),
        _ => Shape::Leaf,
    }
}

fn shape_of(node: &Node) -> Shape<'_> {
    let has_fields = !node.properties.is_empty() || node.values().is_some();
    match node.schema_type.as_str() {
        _ if node.is_atomic_map() => Shape::Leaf,
        "object" if node.embedded_resource => Shape::Resource(Some(node)),
        "object" if has_fields => Shape::Schema(node),
        "array" if node.list_type() != ListType::Atomic => Shape::Listed(node),
        "object" => Shape::Untyped,
        "" if !node.int_or_string => Shape::Untyped,
        _ => Shape::Leaf,
    }
}

/// Returns the path element of an entry of a list with keys. Keys that the entry leaves out have their defaults.
///
/// # Errors
/// If it has none of the keys.
pub(super) fn keyed(node: &Node, entry: &Value) -> Result<PathElement, String> {
    let Value::Object(object) = entry else {
        return Err(not_a_map(entry).to_owned());
    };
    let items = node.items.as_deref();
    let default = |key: &str| items?.properties.get(key)?.default.clone();
    let keys = node.list_map_keys.iter().filter_map(|key| {
        let value = object.get(key).cloned().or_else(|| default(key))?;
        Some((Cow::Owned(key.clone()), value))
    });
    let mut keys: Vec<(Cow<'static, str>, Value)> = keys.collect();
    keys.sort_by(|(one, _), (two, _)| one.cmp(two));
    match keys.is_empty() {
        true => Err(without_keys(&node.list_map_keys)),
        false => Ok(PathElement::Key(keys)),
    }
}
