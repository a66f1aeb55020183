//! The expressions (CEL) of admission policies and webhooks: their variables and types, and their compilation.
//!
//! The kinds report what does not compile; `crate::admission` evaluates the rest.

mod conditions;
mod environment;
mod mutating;
mod schema;
mod type_check;
mod validating;

pub(crate) use conditions::{Compiled, compile as compile_conditions};
pub(crate) use environment::Types;
pub(crate) use mutating::{Mutations, Patch, PatchType, compile as compile_mutations};
pub(crate) use type_check::warnings as type_warnings;
pub(crate) use validating::{Expressions, compile};
