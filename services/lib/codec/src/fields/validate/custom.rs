//! The check of a configuration of a custom kind against its schema.

use serde_json::Value;
use setpoint_schema::{ListType, Node};

use super::{entries_of, identified, object, report, shown, string, structure, type_name};
use crate::fields::Shape;
use crate::fields::custom::part;

/// Checks an object with `kind`, `apiVersion` and metadata. Without a schema, its other fields are not checked.
pub(super) fn resource(node: Option<&Node>, value: &Value, path: &str, problems: &mut Vec<String>) {
    for (name, value) in object(value, path, problems).into_iter().flatten() {
        let path = format!("{path}.{name}");
        match (part(node, name), node) {
            (Some((Shape::Struct(message), _)), _) => structure(message, value, &path, problems),
            (Some((Shape::Leaf, _)), _) if ["apiVersion", "kind"].contains(&name.as_str()) => {
                string(value, &path, problems);
            }
            (Some(_), Some(node)) => property(node, name, value, &path, problems),
            (Some(_), None) => {}
            (None, _) => report(&path, "field not declared in schema", problems),
        }
    }
}

fn property(parent: &Node, name: &str, value: &Value, path: &str, problems: &mut Vec<String>) {
    match parent.field(name) {
        Some(node) => check(node, value, path, problems),
        None if parent.may_have_unknown_fields => {}
        None => report(path, "field not declared in schema", problems),
    }
}

/// Checks that a value has the type of its schema, and only fields that the schema declares.
fn check(node: &Node, value: &Value, path: &str, problems: &mut Vec<String>) {
    match node.schema_type.as_str() {
        _ if value.is_null() => {}
        "object" if node.embedded_resource => resource(Some(node), value, path, problems),
        "object" => fields(node, value, path, problems),
        "array" => list(node, value, path, problems),
        "string" => string(value, path, problems),
        "boolean" if !value.is_boolean() => {
            let problem = format!("expected boolean, got {}", shown(value));
            report(path, &problem, problems);
        }
        "integer" | "number" if !value.is_number() => {
            let problem = format!("expected numeric (int or float), got {}", type_name(value));
            report(path, &problem, problems);
        }
        _ => {}
    }
}

fn fields(node: &Node, value: &Value, path: &str, problems: &mut Vec<String>) {
    let is_open = node.properties.is_empty() && node.values().is_none();
    for (name, value) in object(value, path, problems).into_iter().flatten() {
        if !is_open {
            property(node, name, value, &format!("{path}.{name}"), problems);
        }
    }
}

fn list(node: &Node, value: &Value, path: &str, problems: &mut Vec<String>) {
    let Some(entries) = entries_of(value, path, problems) else {
        return;
    };
    let shape = match node.list_type() {
        ListType::Atomic => Shape::Leaf,
        ListType::Set | ListType::Map => Shape::Listed(node),
    };
    identified(shape, entries, path, problems, |entry, path, problems| {
        if let Some(items) = &node.items {
            check(items, entry, path, problems);
        }
    });
}
