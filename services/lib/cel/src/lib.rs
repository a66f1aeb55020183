//! The expression language CEL as Kubernetes has it: for the rules of schemas (`x-kubernetes-validations`) and for
//! admission policies.
//!
//! An expression is parsed by the crate `cel`, checked against the types that a schema declares ([`Node`]), and
//! evaluated here: an evaluation must be bounded, has to have upstream's errors, and reads the object as its schema
//! says. Every step and every byte is paid ([`Meter`]); what an expression may cost at most is estimated when it is
//! compiled (`check`).
//!
//! * [`Program`]: an expression about `self` and `oldSelf`, the value of a schema and the one that it replaces.
//! * [`Environment`]: compiles expressions that belong to no schema, with variables of their own; [`Evaluation`]
//!   evaluates them.
//!
//! 2026-11: we chose the parser of the crate `cel` and a checker and evaluator of our own over its interpreter, because
//! that has no types, no costs and no limit of work, and its errors are not upstream's. Never parse an expression that
//! `scan` has not accepted: the parser's recursion has no limit either. Wrong if the crate gets types and a cost model.

mod check;
mod computed;
#[cfg(test)]
mod costs;
mod environment;
mod equality;
mod evaluate;
mod evaluation;
mod expr;
pub mod go;
mod library;
mod macros;
mod meter;
mod names;
mod node;
mod parse;
mod patch;
mod pattern;
mod program;
mod scan;
mod size;
pub mod strfmt;
mod time;
mod types;
mod values;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

pub use environment::{Environment, Expression, Global, Output, Variables, on_compiler_stack};
pub use evaluation::{Error, Evaluation, Input, Value};
pub use library::authz::{Authorizer, Decision, Question};
pub use meter::{Failure, Meter};
pub use names::RESERVED_WORDS;
pub use node::{AdditionalProperties, Bounds, Enumeration, ListType, Node, Rule};
pub use parse::selects;
pub use pattern::Pattern;
pub use program::{Activation, CompileError, Program};
pub use size::max_cardinality;

/// Decodes bytes in the standard alphabet.
fn base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}
