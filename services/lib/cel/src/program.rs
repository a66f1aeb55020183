//! Expressions about a value and the one that it replaces: `self` and `oldSelf`.

use serde_json::Value as Json;

use super::check::{Checked, Checker};
use super::environment::Output;
use super::evaluate::Frame;
use super::evaluation::Value;
use super::expr::Expr;
use super::meter::{Failure, Meter};
use super::parse;
use super::size::Size;
use super::types::Type;
use super::values::Val;
use crate::node::Node;

/// The variable of the value.
const SELF: &str = "self";
/// The variable of the value that it replaces.
const OLD_SELF: &str = "oldSelf";

/// A compiled expression.
#[derive(Debug)]
pub struct Program {
    pub(super) expr: Expr,
    /// The number of its variables. The first two are the value and the old value.
    pub(super) slots: usize,
    pub(super) uses_old: bool,
    /// The most that it may cost.
    pub(super) cost: u64,
    /// The levels of its tree, with those of the variables that it computes.
    pub(super) depth: usize,
}

/// The reason for which an expression cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub enum CompileError {
    /// It does not compile; with the errors in upstream's words.
    Failed(String),
    /// Its value has another type than the one that is wanted.
    WrongType,
}

/// The values of the variables of rules. Reading one can fail.
pub struct Activation<'a> {
    new: Result<Val<'a>, Failure>,
    old: Option<Result<Val<'a>, Failure>>,
}

impl<'a> Activation<'a> {
    /// Returns the variables for a value of a schema, and for the one that it replaces.
    pub fn new(new: &'a Json, old: Option<&'a Json>, node: &'a Node, is_resource: bool) -> Self {
        Self {
            new: Val::read(new, node, is_resource),
            old: old.map(|old| Val::read(old, node, is_resource)),
        }
    }

    /// Returns whether the value replaces another one.
    pub fn has_old(&self) -> bool {
        self.old.is_some()
    }
}

impl Program {
    /// Compiles an expression about values of a schema. `optional`: `oldSelf` is an optional value.
    /// Call it from [`super::on_compiler_stack`].
    ///
    /// # Errors
    /// If it does not compile, or if its value does not have the wanted type.
    pub fn compile(
        source: &str,
        node: &Node,
        is_resource: bool,
        optional: bool,
        output: Output,
    ) -> Result<Self, CompileError> {
        let (program, ty) =
            program(source, node, is_resource, optional).map_err(CompileError::Failed)?;
        match output.accepts(&ty) {
            true => Ok(program),
            false => Err(CompileError::WrongType),
        }
    }

    /// Returns whether the expression reads `oldSelf`.
    pub fn uses_old(&self) -> bool {
        self.uses_old
    }

    /// Returns the most that an evaluation may cost.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// Evaluates the expression. `optional` as when it was compiled.
    ///
    /// # Errors
    /// If it has no value, or if it costs more than the meter has left.
    pub fn eval(
        &self,
        activation: &Activation<'_>,
        optional: bool,
        meter: &mut Meter,
    ) -> Result<Value, Failure> {
        meter.begin();
        let mut slots = vec![Ok(Val::Null); self.slots];
        if let [new, old, ..] = slots.as_mut_slice() {
            new.clone_from(&activation.new);
            *old = match (&activation.old, optional) {
                (None, _) => Ok(Val::Optional(None)),
                (Some(old), false) => old.clone(),
                (Some(old), true) => old.clone().map(Val::some),
            };
        }
        let computed = None;
        let mut frame = Frame {
            slots,
            meter,
            computed,
        };
        frame.eval(&self.expr).map(|value| Value::of(&value))
    }
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
