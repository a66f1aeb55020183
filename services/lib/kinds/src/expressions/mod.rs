//! The expressions (CEL) of admission policies and webhooks: their variables and types, and their compilation.
//!
//! The kinds report what does not compile; the gateway evaluates the rest.

mod conditions;
mod environment;
mod mutating;
mod schema;
mod type_check;
mod validating;

pub use conditions::{Compiled, compile as compile_conditions};
pub use environment::Types;
pub use mutating::{Mutations, Patch, PatchType, compile as compile_mutations};
pub use type_check::warnings as type_warnings;
pub use validating::{Expressions, compile};
