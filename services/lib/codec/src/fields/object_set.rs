//! The set of the fields of a document.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::set::{FieldSet, Node};
use super::shape::{Form, Shape};

/// Returns the fields of a value.
pub(super) fn of(shape: Shape<'_>, value: &Value) -> Result<FieldSet, String> {
    match (shape.form(value), value) {
        (Form::Object, Value::Object(object)) => of_object(shape, object),
        (Form::List, Value::Array(entries)) => of_list(shape, entries),
        _ => Ok(FieldSet::default()),
    }
}

fn of_object(shape: Shape<'_>, object: &Map<String, Value>) -> Result<FieldSet, String> {
    let nodes = object.iter().map(|(name, value)| {
        let (inner, is_declared) = shape.child(name).unwrap_or((Shape::Leaf, false));
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        Ok(Node {
            element: shape.field(name),
            is_member: inner.form(value) == Form::Leaf || is_empty || !is_declared,
            below: of(inner, value)?,
        })
    });
    Ok(FieldSet::of_nodes(nodes.collect::<Result<_, String>>()?))
}

/// Returns the entries. Of duplicates only the entry is owned, not what is in it.
fn of_list(shape: Shape<'_>, entries: &[Value]) -> Result<FieldSet, String> {
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
