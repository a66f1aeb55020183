//! The set of the fields of a document.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::set::{FieldSet, Node};
use super::shape::Shape;

/// Returns the fields of a value.
pub(super) fn of(shape: Shape, value: &Value) -> Result<FieldSet, String> {
    match (shape, value) {
        (Shape::Struct(_) | Shape::Map(_), Value::Object(object)) => of_object(shape, object),
        (Shape::Keyed(_) | Shape::Set, Value::Array(entries)) => of_list(shape, entries),
        _ => Ok(FieldSet::default()),
    }
}

/// Returns whether a value is owned as a whole.
const fn is_leaf(shape: Shape) -> bool {
    matches!(shape, Shape::Leaf)
}

fn of_object(shape: Shape, object: &Map<String, Value>) -> Result<FieldSet, String> {
    let nodes = object.iter().map(|(name, value)| {
        let (inner, is_declared) = shape.child(name).unwrap_or((Shape::Leaf, false));
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        Ok(Node {
            element: shape.field(name),
            is_member: is_leaf(inner) || is_empty || !is_declared,
            below: of(inner, value)?,
        })
    });
    Ok(FieldSet::of_nodes(nodes.collect::<Result<_, String>>()?))
}

/// Returns the entries. Of duplicates only the entry is owned, not what is in it.
fn of_list(shape: Shape, entries: &[Value]) -> Result<FieldSet, String> {
    let mut found = BTreeMap::new();
    for entry in entries {
        let element = shape.entry(entry)?;
        let below = found.entry(element).or_insert(Some(entry));
        if !below.is_some_and(|first| std::ptr::eq(first, entry)) {
            *below = None;
        }
    }
    let nodes = found.into_iter().map(|(element, entry)| {
        Ok(Node {
            element,
            is_member: true,
            below: entry.map_or(Ok(FieldSet::default()), |entry| of(shape.entries(), entry))?,
        })
    });
    Ok(FieldSet::of_nodes(nodes.collect::<Result<_, String>>()?))
}
