//! The removal of fields from a document.

use serde_json::{Map, Value};

use super::element::PathElement;
use super::set::{FieldSet, Node};
use super::shape::{Form, Shape};

/// Removes fields from a value, with everything below them. An object or list that becomes empty is kept.
pub(super) fn remove(shape: Shape<'_>, value: &Value, removed: &FieldSet) -> Value {
    match (shape.form(value), value) {
        (Form::Object, Value::Object(object)) => {
            let kept = object.iter().filter_map(|(name, value)| {
                let (element, inner) = shape.named(name);
                let value = remaining(inner, value, removed.node(&element))?;
                Some((name.clone(), value))
            });
            Value::Object(kept.collect::<Map<_, _>>())
        }
        (Form::List, Value::Array(entries)) => {
            let kept = entries.iter().filter_map(|entry| {
                let node = shape.entry(entry).ok();
                let node = node.and_then(|element| removed.node(&element));
                remaining(shape.entries(), entry, node)
            });
            Value::Array(kept.collect())
        }
        _ => value.clone(),
    }
}

/// Returns what is left of a value, or `None` if it is removed itself.
fn remaining(shape: Shape<'_>, value: &Value, removed: Option<&Node>) -> Option<Value> {
    match removed {
        None => Some(value.clone()),
        Some(node) if node.is_member => None,
        Some(node) => Some(remove(shape, value, &node.below)),
    }
}

/// Adds the declared fields above the paths of a set. They are owned only through their parts, but are removed with
/// them.
pub(super) fn with_parents(shape: Option<Shape<'_>>, set: &FieldSet) -> FieldSet {
    let nodes = set.nodes().iter().map(|node| {
        let (inner, is_declared) = match (&node.element, shape) {
            (PathElement::Field(name), Some(shape)) => match shape.child(name) {
                Some((inner, is_declared)) => (Some(inner), is_declared),
                None => (None, false),
            },
            (PathElement::Key(_), Some(shape)) if shape.has_keys() => {
                (Some(shape.entries()), false)
            }
            _ => (None, false),
        };
        Node {
            element: node.element.clone(),
            is_member: node.is_member || (is_declared && !node.below.is_empty()),
            below: with_parents(inner, &node.below),
        }
    });
    FieldSet::of_nodes(nodes.collect())
}
