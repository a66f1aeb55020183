//! Rules of schemas in the language CEL: `x-kubernetes-validations`.
//!
//! A rule is parsed by the usual crate, checked against the types of its schema, and evaluated here: an evaluation must be bounded, has to have
//! upstream's errors, and reads the object as its schema says. Every step and every byte is paid (`meter`); what a rule may cost at most is
//! estimated when its definition is written (`check`, `limits`).

mod check;
mod compile;
mod computed;
#[cfg(test)]
mod costs;
mod defaults;
mod environment;
mod equality;
mod evaluate;
mod evaluation;
mod expr;
mod library;
mod limits;
mod macros;
mod meter;
mod names;
mod parse;
mod patch;
mod program;
mod scan;
mod size;
mod time;
mod types;
mod validate;
mod values;

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::node::{Node, Rule};

pub(crate) use defaults::check as check_defaults;
pub use environment::{Environment, Expression, Global, Output, Variables, on_compiler_stack};
pub use evaluation::{Error, Evaluation, Input, Value};
pub use library::authz::{Authorizer, Decision, Question};
pub(crate) use limits::check as check_definition;
pub use names::RESERVED_WORDS;
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
        match parse::with_stack(|| Self::of(node, is_resource)) {
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

/// Decodes bytes in the standard alphabet.
fn base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}
