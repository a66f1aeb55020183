//! Duplicates in sets and in lists of type map.

use std::collections::HashMap;

use serde_json::{Map, Value};
use setpoint_cel::{ListType, Node};

use crate::path::Path;
use crate::violation::Violation;

/// Adds an error for the first repetition of each item.
pub(crate) fn check(node: &Node, value: &Value, path: &Path<'_>, found: &mut Vec<Violation>) {
    match value {
        Value::Array(items) => {
            match node.list_type() {
                ListType::Set => set(items, items, path, found),
                ListType::Map => map(node, items, path, found),
                ListType::Atomic => {}
            }
            if let Some(node) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    check(node, item, &path.index(index), found);
                }
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                match (node.properties.get(name), node.values()) {
                    (Some(node), _) => check(node, value, &path.field(name), found),
                    (None, Some(node)) => check(node, value, &path.key(name), found),
                    (None, None) => {}
                }
            }
        }
        _ => {}
    }
}

/// Reports the items whose keys occur a second time; later repetitions are not reported.
fn set(items: &[Value], keys: &[Value], path: &Path<'_>, found: &mut Vec<Violation>) {
    let mut times: HashMap<String, usize> = HashMap::new();
    for (index, key) in keys.iter().enumerate() {
        let times = times.entry(key.to_string()).or_default();
        *times += 1;
        if *times == 2 && index < items.len() {
            found.push(Violation::duplicate(&path.index(index), key.clone()));
        }
    }
}

fn map(node: &Node, items: &[Value], path: &Path<'_>, found: &mut Vec<Violation>) {
    let mut keys = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        match item {
            Value::Null => keys.push(Value::Object(Map::new())),
            Value::Object(fields) => keys.push(key(node, fields)),
            other => {
                let detail = "must be an object for an array of list-type map";
                return found.push(Violation::invalid(
                    &path.index(index),
                    other.clone(),
                    detail,
                ));
            }
        }
    }
    set(items, &keys, path, found);
}

fn key(node: &Node, fields: &Map<String, Value>) -> Value {
    let names = node.list_map_keys.iter();
    let set = names.filter_map(|name| Some((name.clone(), fields.get(name)?.clone())));
    Value::Object(set.collect())
}
