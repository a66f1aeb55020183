//! The keywords of schemas: which are supported, and what they may hold.

use serde_json::{Map, Value};
use setpoint_cel::{AdditionalProperties, Node};

use super::extensions;
use crate::path::Path;
use crate::violation::Violation;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Keywords that are never supported, and whether an empty value is.
const UNSUPPORTED: [(&str, bool); 7] = [
    ("id", true),
    ("additionalItems", false),
    ("patternProperties", true),
    ("definitions", true),
    ("dependencies", false),
    ("$ref", false),
    ("$schema", true),
];

/// The context of a schema.
#[derive(Clone, Default)]
struct Scope {
    /// The reason for which defaults are forbidden, if they are.
    no_defaults: Option<String>,
    inside_meta: bool,
}

pub(super) fn check(json: &Value, node: &Node, path: &Path<'_>) -> Vec<Violation> {
    let mut checker = Checker { found: Vec::new() };
    checker.node(json, node, path, &Scope::default(), true);
    checker.found
}

struct Checker {
    found: Vec<Violation>,
}

impl Checker {
    fn node(&mut self, json: &Value, node: &Node, path: &Path<'_>, scope: &Scope, is_root: bool) {
        let Some(json) = json.as_object() else { return };
        self.keywords(json, node, path, scope);
        self.fields(json, node, path, scope, is_root);
        self.junctors(json, node, path, scope);
        if let (Some(items), Some(json)) = (&node.items, json.get("items")) {
            self.node(json, items, &path.field("items"), scope, false);
        }
        if json.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let path = path.field("x-kubernetes-preserve-unknown-fields");
            self.found.push(Violation::invalid(
                &path,
                false,
                "must be true or undefined",
            ));
        }
        extensions::check(node, path, &mut self.found);
    }

    fn keywords(&mut self, json: &Map<String, Value>, node: &Node, path: &Path<'_>, scope: &Scope) {
        let type_path = path.field("type");
        let schema_type = node.schema_type.as_str();
        if !schema_type.is_empty() && !TYPES.contains(&schema_type) {
            let supported = TYPES.map(str::to_owned);
            self.found.push(Violation::not_supported(
                &type_path,
                schema_type.into(),
                &supported,
            ));
        }
        if let (Some(_), Some(reason)) = (&node.default, &scope.no_defaults) {
            let detail = format!("must not be set {reason}");
            self.found
                .push(Violation::forbidden(&path.field("default"), detail));
        }
        for (word, may_be_empty) in UNSUPPORTED {
            let set = json.get(word).filter(|value| !value.is_null());
            if set.is_some_and(|value| !may_be_empty || !super::is_empty(value)) {
                self.forbid(path.field(word), &format!("{word} is not supported"));
            }
        }
        if schema_type == "null" {
            self.forbid(
                type_path,
                "type cannot be set to null, use nullable as an alternative",
            );
        }
        if scope.inside_meta && node.embedded_resource {
            self.forbid(
                path.field("x-kubernetes-embedded-resource"),
                "must not be used inside of resource meta",
            );
        }
        if node.bounds.unique_items {
            let detail =
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid(path.field("uniqueItems"), detail);
        }
    }

    fn fields(
        &mut self,
        json: &Map<String, Value>,
        node: &Node,
        path: &Path<'_>,
        scope: &Scope,
        is_root: bool,
    ) {
        let additional = path.field("additionalProperties");
        let both = !node.properties.is_empty() && node.additional_properties.is_some();
        if both
            && !matches!(
                node.additional_properties,
                Some(AdditionalProperties::Allowed(true))
            )
        {
            self.forbid(
                additional,
                "additionalProperties and properties are mutual exclusive",
            );
        }
        if let (Some(values), Some(json)) = (node.values(), json.get("additionalProperties")) {
            let mut inner = scope.clone();
            if scope.inside_meta {
                inner.no_defaults =
                    Some("inside additionalProperties applying to object metadata".into());
            }
            self.node(json, values, &additional, &inner, false);
        }
        let properties = path.field("properties");
        for (name, child) in &node.properties {
            let mut inner = scope.clone();
            if (is_root || node.embedded_resource)
                && ["metadata", "kind", "apiVersion"].contains(&name.as_str())
            {
                inner.inside_meta = true;
                if is_root {
                    inner.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            if let Some(json) = json.get("properties").and_then(|json| json.get(name)) {
                self.node(json, child, &properties.key(name), &inner, false);
            }
        }
    }

    fn junctors(&mut self, json: &Map<String, Value>, node: &Node, path: &Path<'_>, scope: &Scope) {
        for (word, index, branch) in node.junctors() {
            let list = path.field(word);
            let path = index.map_or(list, |index| list.index(index));
            let json = json.get(word);
            let json = index.map_or(json, |index| json.and_then(|json| json.get(index)));
            if let Some(json) = json {
                self.node(json, branch, &path, scope, false);
            }
        }
    }

    fn forbid(&mut self, path: Path<'_>, detail: &str) {
        self.found.push(Violation::forbidden(&path, detail));
    }
}
