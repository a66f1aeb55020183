//! Checks that a schema is structural: every value has a type, and value validations add none.

use setpoint_cel::{AdditionalProperties, Node};

use super::is_bare;
use crate::path::Path;
use crate::violation::Violation;

/// The position of a schema.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Returns what is not structural, sorted.
pub(super) fn check(node: &Node, path: &Path<'_>) -> Vec<Violation> {
    let mut checker = Checker { found: Vec::new() };
    checker.node(node, Level::Root, path);
    checker.complete(node, Some(node), path, path);
    checker.found.sort_by_key(ToString::to_string);
    checker.found
}

struct Checker {
    found: Vec<Violation>,
}

impl Checker {
    fn forbid(&mut self, condition: bool, path: Path<'_>, detail: &str) {
        if condition {
            self.found.push(Violation::forbidden(&path, detail));
        }
    }

    fn require(&mut self, condition: bool, path: Path<'_>, detail: &str) {
        if !condition {
            self.found.push(Violation::required(&path, detail));
        }
    }

    fn node(&mut self, node: &Node, level: Level, path: &Path<'_>) {
        self.children(node, level, path);
        for (word, clash) in [
            (
                "x-kubernetes-preserve-unknown-fields",
                node.preserve_unknown_fields,
            ),
            ("x-kubernetes-embedded-resource", node.embedded_resource),
        ] {
            if node.int_or_string && clash {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                self.found
                    .push(Violation::invalid(&path.field(word), true, detail));
            }
        }
        self.branches(
            node,
            is_int_or_string_any_of(node),
            is_int_or_string_all_of(node),
            path,
        );
        self.schema_type(node, level, path);
        self.resource(node, level, path);
    }

    fn children(&mut self, node: &Node, level: Level, path: &Path<'_>) {
        self.require(
            node.schema_type != "array" || node.items.is_some(),
            path.field("items"),
            "must be specified",
        );
        if let Some(items) = &node.items {
            self.node(items, Level::Item, &path.field("items"));
        }
        let properties = path.field("properties");
        for (name, child) in &node.properties {
            self.node(child, Level::Field, &properties.key(name));
        }
        let additional = path.field("additionalProperties");
        let is_map = node.additional_properties.is_some();
        self.forbid(
            is_map && level == Level::Root,
            additional,
            "must not be used at the root",
        );
        if let Some(values) = node.values() {
            self.node(values, Level::Field, &additional);
        }
    }

    fn schema_type(&mut self, node: &Node, level: Level, path: &Path<'_>) {
        let (path, schema_type) = (path.field("type"), node.schema_type.as_str());
        let untyped = node.int_or_string || node.preserve_unknown_fields;
        let embedded = "must be object if x-kubernetes-embedded-resource is true";
        match schema_type {
            "object" => {}
            "" if node.embedded_resource => self.require(false, path, embedded),
            _ if node.embedded_resource => {
                self.found
                    .push(Violation::invalid(&path, schema_type, embedded))
            }
            "" => {
                let place = match level {
                    Level::Root => "at the root",
                    Level::Item => "for specified array items",
                    Level::Field => "for specified object fields",
                };
                self.require(untyped, path, &format!("must not be empty {place}"));
            }
            _ => {}
        }
        if level == Level::Root && !["", "object"].contains(&schema_type) {
            self.found.push(Violation::invalid(
                &path,
                schema_type,
                "must be object at the root",
            ));
        }
    }

    /// The fields that every object has are known: a schema may say little about them.
    fn resource(&mut self, node: &Node, level: Level, path: &Path<'_>) {
        let is_resource = level == Level::Root || node.embedded_resource;
        let properties = path.field("properties");
        let additional = path.field("additionalProperties");
        let is_map = node.embedded_resource && node.additional_properties.is_some();
        self.forbid(
            is_map,
            additional,
            "must not be used if x-kubernetes-embedded-resource is set",
        );
        for name in ["kind", "apiVersion"] {
            let field = node.properties.get(name).filter(|_| is_resource);
            if let Some(field) = field.filter(|field| field.schema_type != "string") {
                let path = properties.key(name);
                let violation = Violation::invalid(
                    &path.field("type"),
                    field.schema_type.as_str(),
                    "must be string",
                );
                self.found.push(violation);
            }
        }
        if let Some(metadata) = node.properties.get("metadata") {
            self.metadata(metadata, is_resource, level, &properties.key("metadata"));
        }
        let empty =
            node.embedded_resource && !node.preserve_unknown_fields && node.properties.is_empty();
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        self.require(!empty, properties, detail);
    }

    fn metadata(&mut self, node: &Node, is_resource: bool, level: Level, path: &Path<'_>) {
        let schema_type = node.schema_type.as_str();
        if is_resource && schema_type != "object" {
            self.found.push(Violation::invalid(
                &path.field("type"),
                schema_type,
                "must be object",
            ));
        }
        let mut names = node.properties.keys();
        let names_only = names.all(|name| ["name", "generateName"].contains(&name.as_str()));
        let plain = names_only && is_bare(node, schema_type, true);
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        self.forbid(level == Level::Root && !plain, *path, detail);
    }

    /// Checks the schemas of junctors. Those that are part of the form of `x-kubernetes-int-or-string` may have types.
    fn branches(&mut self, node: &Node, skip_any_of: bool, skip_in_first: bool, path: &Path<'_>) {
        for (word, index, branch) in node.junctors() {
            let list = path.field(word);
            let path = index.map_or(list, |index| list.index(index));
            match word {
                "anyOf" if skip_any_of => {}
                "allOf" if skip_in_first && index == Some(0) => self.branch(branch, true, &path),
                _ => self.branch(branch, false, &path),
            }
        }
    }

    fn branch(&mut self, node: &Node, skip_any_of: bool, path: &Path<'_>) {
        self.branches(node, skip_any_of, false, path);
        if let Some(items) = &node.items {
            self.branch(items, false, &path.field("items"));
        }
        let properties = path.field("properties");
        for (name, child) in &node.properties {
            self.branch(child, false, &properties.key(name));
        }
        self.no_structure(node, path);
        self.no_extensions(node, path);
        let metadata = node.properties.contains_key("metadata");
        self.forbid(
            metadata,
            properties.key("metadata"),
            "must not be specified in a nested context",
        );
    }

    fn no_structure(&mut self, node: &Node, path: &Path<'_>) {
        let additional = !matches!(
            node.additional_properties,
            None | Some(AdditionalProperties::Allowed(false))
        );
        self.forbid(
            !node.schema_type.is_empty(),
            path.field("type"),
            "must be empty to be structural",
        );
        self.forbid(
            additional,
            path.field("additionalProperties"),
            "must be undefined to be structural",
        );
        self.forbid(
            node.default.is_some(),
            path.field("default"),
            "must be undefined to be structural",
        );
        self.forbid(
            !node.title.is_empty(),
            path.field("title"),
            "must be empty to be structural",
        );
        self.forbid(
            !node.description.is_empty(),
            path.field("description"),
            "must be empty to be structural",
        );
        self.forbid(
            node.nullable,
            path.field("nullable"),
            "must be false to be structural",
        );
    }

    fn no_extensions(&mut self, node: &Node, path: &Path<'_>) {
        let cases = [
            (
                "preserve-unknown-fields",
                node.preserve_unknown_fields,
                "false",
            ),
            ("embedded-resource", node.embedded_resource, "false"),
            ("int-or-string", node.int_or_string, "false"),
            ("list-map-keys", !node.list_map_keys.is_empty(), "empty"),
            ("list-type", node.declared_list_type.is_some(), "undefined"),
            ("map-type", node.declared_map_type.is_some(), "undefined"),
            ("validations", !node.rules.is_empty(), "empty"),
        ];
        for (word, set, wanted) in cases {
            let word = format!("x-kubernetes-{word}");
            self.forbid(
                set,
                path.field(&word),
                &format!("must be {wanted} to be structural"),
            );
        }
    }

    /// Checks that `structure` has every field and item that the junctors of `node` speak of.
    fn complete(&mut self, node: &Node, structure: Option<&Node>, at: &Path<'_>, path: &Path<'_>) {
        for (word, index, branch) in node.junctors() {
            let list = path.field(word);
            let path = index.map_or(list, |index| list.index(index));
            self.branch_complete(branch, structure, at, &path);
        }
    }

    fn branch_complete(
        &mut self,
        branch: &Node,
        structure: Option<&Node>,
        at: &Path<'_>,
        path: &Path<'_>,
    ) {
        let Some(structure) = structure else {
            let detail = format!("because it is defined in {path}");
            return self.require(false, *at, &detail);
        };
        self.complete(branch, Some(structure), at, path);
        if let Some(items) = &branch.items {
            let items_of = structure.items.as_deref();
            self.branch_complete(items, items_of, &at.field("items"), &path.field("items"));
        }
        let (at, path) = (at.field("properties"), path.field("properties"));
        for (name, child) in &branch.properties {
            self.branch_complete(
                child,
                structure.properties.get(name),
                &at.key(name),
                &path.key(name),
            );
        }
    }
}

fn is_int_or_string_any_of(node: &Node) -> bool {
    match node.any_of.as_slice() {
        [int, string] => is_bare(int, "integer", false) && is_bare(string, "string", false),
        _ => false,
    }
}

fn is_int_or_string_all_of(node: &Node) -> bool {
    node.all_of.first().is_some_and(is_int_or_string_any_of)
}
