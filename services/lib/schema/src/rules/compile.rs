//! Rules that are ready to be evaluated.

use super::check::{Checked, Checker};
use super::expr::Expr;
use super::parse;
use super::size::Size;
use super::types::Type;
use crate::definition::field_path;
use crate::node::{Node, Rule};

/// The variable of the value.
const SELF: &str = "self";
/// The variable of the value that it replaces.
const OLD_SELF: &str = "oldSelf";

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) expr: Expr,
    /// The number of its variables. The first two are the value and the old value.
    pub(super) slots: usize,
    pub(super) uses_old: bool,
    /// The most that it may cost.
    pub(super) cost: u64,
    /// The levels of its tree, with those of the variables that it computes.
    pub(super) depth: usize,
}

/// A compiled rule.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) rule: Result<Program, String>,
    /// None if the rule has none.
    pub(super) message: Option<Result<Program, String>>,
    /// The path of the field that errors are of, below the value.
    pub(super) field_path: String,
}

/// Compiles a rule. None if it is empty. Call it from [`parse::with_stack`].
pub(super) fn rule(rule: &Rule, node: &Node, is_resource: bool) -> Option<Compiled> {
    if rule.rule.trim().is_empty() {
        return None;
    }
    let optional = rule.optional_old_self == Some(true);
    let compile = |source: &str| program(source, node, is_resource, optional);
    let compiled = compile(&rule.rule)
        .map_err(|error| format!("compilation failed: {error}"))
        .and_then(|(program, ty)| match ty {
            Type::Bool => Ok(program),
            _ => Err("cel expression must evaluate to a bool".to_owned()),
        });
    let message = (!rule.message_expression.is_empty() && compiled.is_ok()).then(|| {
        compile(&rule.message_expression)
            .map_err(|error| format!("messageExpression compilation failed: {error}"))
            .and_then(|(program, ty)| match ty {
                Type::String => Ok(program),
                _ => Err("messageExpression must evaluate to a string".to_owned()),
            })
    });
    Some(Compiled {
        rule: compiled,
        message,
        field_path: field_path::resolve(&rule.field_path, node).unwrap_or_default(),
    })
}

pub(super) fn program<'n>(
    source: &str,
    node: &'n Node,
    is_resource: bool,
    optional: bool,
) -> Result<(Program, Type<'n>), String> {
    let parsed = parse::parse(source)?;
    let ty = Type::of(node, is_resource)
        .ok_or("failed to convert to declType for CEL validation rules")?;
    let mut checker = Checker::default();
    let old = match optional {
        true => Type::Optional(Box::new(ty.clone())),
        false => ty.clone(),
    };
    checker.declare(SELF, ty, Size::Node(node));
    checker.declare(OLD_SELF, old, Size::Node(node));
    let checked = checker.check(&parsed.root);
    let Checked { expr, ty, cost, .. } =
        checked.map_err(|problem| parsed.error(problem.id, &problem.text))?;
    let program = Program {
        expr,
        slots: checker.slots,
        uses_old: checker.used[1],
        cost,
        depth: parsed.depth,
    };
    Ok((program, ty))
}
