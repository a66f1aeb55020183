//! The extensions of schemas: types of lists and maps, and the form of rules.

use setpoint_cel::{ListType, Node, Rule};

use super::field_path;
use crate::path::Path;
use crate::violation::Violation;

const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Checks the extensions of one schema.
pub(super) fn check(node: &Node, path: &Path<'_>, found: &mut Vec<Violation>) {
    map_type(node, path, found);
    list_type(node, path, found);
    if node.list_type() == ListType::Map {
        list_map(node, path, found);
    }
    if let Some(items) = node
        .items
        .as_deref()
        .filter(|_| node.list_type() != ListType::Atomic)
    {
        identified_items(node, items, &path.field("items"), found);
    }
    let rules = path.field("x-kubernetes-validations");
    for (index, rule) in node.rules.iter().enumerate() {
        self::rule(rule, node, &rules.index(index), found);
    }
}

fn map_type(node: &Node, path: &Path<'_>, found: &mut Vec<Violation>) {
    let Some(map_type) = node.declared_map_type.as_deref() else {
        return;
    };
    found.extend(requires_type(node, "object", "x-kubernetes-map-type", path));
    let supported = ["atomic", "granular"].map(str::to_owned);
    if !supported.iter().any(|known| known == map_type) {
        let path = path.field("x-kubernetes-map-type");
        found.push(Violation::not_supported(&path, map_type.into(), &supported));
    }
}

fn requires_type(node: &Node, wanted: &str, word: &str, path: &Path<'_>) -> Option<Violation> {
    let detail = format!("must be {wanted} if {word} is specified");
    let path = path.field("type");
    match node.schema_type.as_str() {
        "" => Some(Violation::required(&path, detail)),
        same if same == wanted => None,
        other => Some(Violation::invalid(&path, other, detail)),
    }
}

fn list_type(node: &Node, path: &Path<'_>, found: &mut Vec<Violation>) {
    let type_path = path.field("x-kubernetes-list-type");
    let declared = node.declared_list_type.as_deref();
    if let Some(list_type) = declared {
        let mistyped = requires_type(node, "array", "x-kubernetes-list-type", path);
        match (mistyped, &node.items) {
            (Some(mistyped), _) => found.push(mistyped),
            (None, Some(items)) if list_type == "set" => {
                set_items(items, &path.field("items"), found)
            }
            _ => {}
        }
        let supported = ["atomic", "set", "map"].map(str::to_owned);
        if !supported.iter().any(|known| known == list_type) {
            found.push(Violation::not_supported(
                &type_path,
                list_type.into(),
                &supported,
            ));
        }
    }
    if !node.list_map_keys.is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match declared {
            None => found.push(Violation::required(&type_path, detail)),
            Some("map") => {}
            Some(other) => found.push(Violation::invalid(&type_path, other, detail)),
        }
    }
}

/// The items of a set are compared as a whole.
fn set_items(items: &Node, path: &Path<'_>, found: &mut Vec<Violation>) {
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let list_type = items.declared_list_type.as_deref();
    match items.schema_type.as_str() {
        "array" if list_type.is_some_and(|declared| declared != "atomic") => {
            found.push(Violation::invalid(
                &path.field("x-kubernetes-list-type"),
                list_type,
                detail,
            ));
        }
        "object" if !items.is_atomic_map() => {
            found.push(Violation::invalid(
                &path.field("x-kubernetes-map-type"),
                list_type,
                detail,
            ));
        }
        _ => {}
    }
}

fn list_map(node: &Node, path: &Path<'_>, found: &mut Vec<Violation>) {
    let keys_path = path.field("x-kubernetes-list-map-keys");
    let items_path = path.field("items");
    if node.list_map_keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        found.push(Violation::required(&keys_path, detail));
    }
    let Some(items) = &node.items else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        return found.push(Violation::required(&items_path, detail));
    };
    if items.schema_type != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        let violation = Violation::invalid(
            &items_path.field("type"),
            items.schema_type.as_str(),
            detail,
        );
        return found.push(violation);
    }
    let keys = &node.list_map_keys;
    let properties = items_path.field("properties");
    for (index, key) in keys.iter().enumerate() {
        match items
            .properties
            .get(key)
            .map(|field| field.schema_type.as_str())
        {
            None => {
                let detail = "entries must all be names of item properties";
                found.push(Violation::invalid(&keys_path, keys.clone(), detail));
            }
            Some("array" | "object") => {
                let detail =
                    "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let path = properties.key(key);
                found.push(Violation::invalid(
                    &path.field("type"),
                    items.schema_type.as_str(),
                    detail,
                ));
            }
            Some(_) => {}
        }
        if keys[..index].contains(key) {
            found.push(Violation::invalid(
                &keys_path,
                keys.clone(),
                "must not contain duplicate entries",
            ));
        }
    }
}

/// Checks that the items of a set or a list map are declared, and the keys of the latter.
fn identified_items(node: &Node, items: &Node, path: &Path<'_>, found: &mut Vec<Violation>) {
    let list_type = node.declared_list_type.as_deref().unwrap_or_default();
    if items.nullable {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        found.push(Violation::forbidden(&path.field("nullable"), detail));
    }
    let properties = path.field("properties");
    let keys = node
        .list_map_keys
        .iter()
        .filter(|_| node.list_type() == ListType::Map);
    for key in keys {
        let Some(field) = items.properties.get(key) else {
            continue;
        };
        let path = properties.key(key);
        if !items.required.contains(key) && field.default.is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            found.push(Violation::required(&path.field("default"), detail));
        }
        if field.nullable {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            found.push(Violation::forbidden(&path.field("nullable"), detail));
        }
    }
}

fn rule(rule: &Rule, node: &Node, path: &Path<'_>, found: &mut Vec<Violation>) {
    message(rule, path, found);
    if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        found.push(Violation::required(
            &path.field("messageExpression"),
            detail,
        ));
    }
    if let Some(reason) = rule
        .reason
        .as_deref()
        .filter(|reason| !REASONS.contains(reason))
    {
        let supported = REASONS.map(str::to_owned);
        found.push(Violation::not_supported(
            &path.field("reason"),
            reason.into(),
            &supported,
        ));
    }
    let field_path = rule.field_path.as_str();
    let mut problems = Vec::new();
    if !field_path.is_empty() {
        if field_path.trim().is_empty() {
            problems.push("must be non-empty if specified");
        }
        if has_line_breaks(field_path) {
            problems.push("must not contain line breaks");
        }
        if field_path::resolve(field_path, node).is_err() {
            problems.push("must be a valid path");
        }
    }
    let path = path.field("fieldPath");
    found.extend(
        problems
            .into_iter()
            .map(|detail| Violation::invalid(&path, field_path, detail)),
    );
}

fn message(rule: &Rule, path: &Path<'_>, found: &mut Vec<Violation>) {
    let (text, message) = (rule.rule.trim(), rule.message.trim());
    let message_path = path.field("message");
    if text.is_empty() {
        found.push(Violation::required(
            &path.field("rule"),
            "rule is not specified",
        ));
    } else if !rule.message.is_empty() && message.is_empty() {
        let detail = "must be non-empty if specified";
        found.push(Violation::invalid(
            &message_path,
            rule.message.as_str(),
            detail,
        ));
    } else if has_line_breaks(message) {
        let detail = "must not contain line breaks";
        found.push(Violation::invalid(
            &message_path,
            rule.message.as_str(),
            detail,
        ));
    } else if has_line_breaks(text) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        found.push(Violation::required(&message_path, detail));
    }
}

fn has_line_breaks(text: &str) -> bool {
    text.contains(['\n', '\r'])
}
