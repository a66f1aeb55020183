//! Defaults against rules.

use setpoint_cel::Node;

use super::Tree;
use super::validate::{Budget, validate};
use crate::path::Path;
use crate::violation::Violation;

/// Checks that the defaults of a schema satisfy its rules, whether they replace a value or not.
pub(crate) fn check(tree: &Tree, node: &Node, path: &Path<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    walk(tree, node, path, &mut Budget::new(), &mut found);
    found
}

fn walk(
    tree: &Tree,
    node: &Node,
    path: &Path<'_>,
    budget: &mut Budget,
    found: &mut Vec<Violation>,
) {
    if let Some(default) = &node.default {
        let path = path.field("default");
        let mut errors = validate(tree, node, default, Some(default), None, &path, budget);
        if errors.is_empty() {
            errors = validate(tree, node, default, None, None, &path, budget);
        }
        found.extend(errors);
    }
    if let (Some(tree), Some(items)) = (&tree.items, &node.items) {
        walk(tree, items, &path.field("items"), budget, found);
    }
    let properties = path.field("properties");
    for (name, tree) in &tree.properties {
        if let Some(child) = node.properties.get(name) {
            walk(tree, child, &properties.key(name), budget, found);
        }
    }
}
