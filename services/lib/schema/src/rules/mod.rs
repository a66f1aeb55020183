//! The rules of schemas, in the language CEL: `x-kubernetes-validations`.
//!
//! Each rule is compiled against the type of its schema when the definition is written (`compile`), where its estimated
//! cost is limited (`limits`) and the schema's defaults are checked against it (`defaults`); objects are validated when
//! they are written (`validate`).

mod compile;
mod defaults;
mod limits;
mod validate;

use std::collections::BTreeMap;

use setpoint_cel::{Node, Rule, on_compiler_stack};

pub(crate) use defaults::check as check_defaults;
pub(crate) use limits::check as check_definition;
pub(crate) use validate::{Budget, validate};

/// The compiled rules of a schema and of those inside of it.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    rules: Vec<(Rule, Option<compile::Compiled>)>,
    properties: BTreeMap<String, Tree>,
    values: Option<Box<Tree>>,
    items: Option<Box<Tree>>,
    is_resource: bool,
    /// The reason for which nothing could be compiled.
    failure: Option<String>,
}

impl Tree {
    /// Compiles the rules of a schema. None if it has none.
    pub(crate) fn compile(node: &Node, is_resource: bool) -> Option<Self> {
        if !has_rules(node) {
            return None;
        }
        match on_compiler_stack(|| Self::of(node, is_resource)) {
            Ok(tree) => tree,
            Err(failure) => Some(Self {
                failure: Some(failure),
                ..Self::default()
            }),
        }
    }

    fn of(node: &Node, is_resource: bool) -> Option<Self> {
        let rules = node.rules.iter().map(|rule| {
            let compiled = compile::rule(rule, node, is_resource);
            (rule.clone(), compiled)
        });
        let child = |node: &Node| Self::of(node, node.embedded_resource);
        let tree = Self {
            rules: rules.collect(),
            properties: node
                .properties
                .iter()
                .filter_map(|(name, node)| Some((name.clone(), child(node)?)))
                .collect(),
            values: node.values().and_then(child).map(Box::new),
            items: node.items.as_deref().and_then(child).map(Box::new),
            is_resource,
            failure: None,
        };
        (!tree.is_empty()).then_some(tree)
    }

    fn is_empty(&self) -> bool {
        self.rules.is_empty()
            && self.properties.is_empty()
            && self.values.is_none()
            && self.items.is_none()
    }
}

fn has_rules(node: &Node) -> bool {
    let children = node.properties.values().chain(node.values());
    !node.rules.is_empty() || children.chain(node.items.as_deref()).any(has_rules)
}
