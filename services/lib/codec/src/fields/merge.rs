//! The merge of an applied configuration into the live object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element::PathElement;
use super::shape::{Form, Shape};

/// Merges a configuration into a value. What the configuration does not name is kept.
///
/// # Errors
/// If an entry of a list has no key, or the configuration has two of the same key.
pub(super) fn merge(shape: Shape<'_>, live: &Value, config: &Value) -> Result<Value, String> {
    match shape.form(config) {
        Form::Object => {
            let none = Map::new();
            let old = live.as_object().unwrap_or(&none);
            let new = config.as_object().unwrap_or(&none);
            if !(old.is_empty() && new.is_empty()) {
                return objects(shape, old, new).map(Value::Object);
            }
        }
        Form::List => {
            let old = live.as_array().map(Vec::as_slice).unwrap_or_default();
            let new = config.as_array().map(Vec::as_slice).unwrap_or_default();
            if !(old.is_empty() && new.is_empty()) {
                return lists(shape, old, new).map(Value::Array);
            }
        }
        Form::Leaf => {}
    }
    Ok(config.clone())
}

fn objects(
    shape: Shape<'_>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let mut merged = old.clone();
    for (name, config) in new {
        let inner = shape.child(name).map_or(Shape::Leaf, |(shape, _)| shape);
        let value = match old.get(name) {
            Some(live) => merge(inner, live, config)?,
            None => config.clone(),
        };
        merged.insert(name.clone(), value);
    }
    Ok(merged)
}

/// The entries of a list.
struct Indexed<'v> {
    elements: Vec<PathElement>,
    values: BTreeMap<PathElement, &'v Value>,
}

impl<'v> Indexed<'v> {
    /// Indexes a list. A key that occurs twice has the value null.
    fn new(shape: Shape<'_>, list: &'v [Value], may_repeat: bool) -> Result<Self, String> {
        let mut values = BTreeMap::new();
        let mut elements = Vec::with_capacity(list.len());
        for (at, entry) in list.iter().enumerate() {
            let element = shape.entry(entry);
            let element = element.map_err(|error| format!("element {at}: {error}"))?;
            elements.push(element.clone());
            if values.insert(element.clone(), entry).is_some() {
                if !may_repeat {
                    return Err(format!("duplicate entries for key {element}"));
                }
                values.insert(element, &Value::Null);
            }
        }
        Ok(Self { elements, values })
    }
}

/// Merges two lists by key. Common entries are in the order of the configuration; the others keep their neighbours.
fn lists(shape: Shape<'_>, old: &[Value], new: &[Value]) -> Result<Vec<Value>, String> {
    let right = Indexed::new(shape, new, false)?;
    let left = Indexed::new(shape, old, true)?;
    let inner = shape.entries();
    let merged_entry =
        |element: &PathElement| match (left.values.get(element), right.values.get(element)) {
            (Some(live), Some(config)) => merge(inner, live, config),
            (_, config) => Ok(config.map_or(Value::Null, |config| (*config).clone())),
        };
    let mut shared = right
        .elements
        .iter()
        .filter(|element| left.values.contains_key(*element))
        .peekable();
    let mut merged = BTreeSet::new();
    let mut out = Vec::with_capacity(old.len().max(new.len()));
    let (mut l, mut r) = (0, 0);
    while l < old.len() || r < new.len() {
        if let (Some(live), Some(config)) = (left.elements.get(l), right.elements.get(r)) {
            if live == config {
                merged.insert(live);
                out.push(merged_entry(live)?);
                (l, r) = (l + 1, r + 1);
                shared.next();
                continue;
            }
            let is_next = shared.peek().is_none_or(|next| *next == live);
            if right.values.contains_key(live) && !is_next {
                l += 1;
                continue;
            }
        }
        if let Some(live) = left.elements.get(l) {
            if !right.values.contains_key(live) {
                out.push(old[l].clone());
                l += 1;
                continue;
            }
            if merged.contains(live) {
                l += 1;
            }
        }
        if let Some(config) = right.elements.get(r) {
            merged.insert(config);
            out.push(merged_entry(config)?);
            r += 1;
            if shared.peek().is_some_and(|next| *next == config) {
                shared.next();
            }
        }
    }
    Ok(out)
}
