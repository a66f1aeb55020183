//! Expressions that were checked, as they are evaluated.

use std::sync::Arc;

use super::library::Overload;
use super::values::Val;

/// An expression. Variables are places in a list of values.
#[derive(Debug)]
pub(super) enum Expr {
    Const(Val<'static>),
    Var(usize),
    /// A variable that is computed when it is read first.
    Computed(usize),
    Select(Box<Select>),
    Call {
        overloads: Vec<&'static Overload>,
        args: Vec<Expr>,
    },
    And(Box<[Expr; 2]>),
    Or(Box<[Expr; 2]>),
    Cond(Box<[Expr; 3]>),
    /// Whether the value is not false: an error is not.
    NotFalse(Box<Expr>),
    /// The items, and whether each may be missing.
    List(Vec<(Expr, bool)>),
    Map(Vec<(Expr, Expr, bool)>),
    /// A typed object: the name of its type, and its fields, each with whether it may be missing.
    Struct(Arc<str>, Vec<(Arc<str>, Expr, bool)>),
    Fold(Box<Fold>),
    /// Adds an item to a variable that is a list.
    Append(usize, Box<Expr>),
    /// Adds an entry, or the entries of a map, to a variable that is a map.
    Insert(usize, Vec<Expr>),
}

/// The field of an object or a map.
#[derive(Debug)]
pub(super) struct Select {
    pub(super) operand: Expr,
    pub(super) field: Val<'static>,
    pub(super) kind: SelectKind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SelectKind {
    /// The value of the field.
    Value,
    /// The value, if the field is there.
    Optional,
    /// Whether the field is there.
    Presence,
}

/// A comprehension.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) range: Expr,
    pub(super) variable: usize,
    pub(super) second: Option<usize>,
    pub(super) accu: usize,
    pub(super) init: Expr,
    pub(super) cond: Expr,
    pub(super) step: Expr,
    pub(super) result: Expr,
}
