//! ValidatingAdmissionPolicy, as upstream's plugin of that name.
//!
//! ```text
//! policies with bindings (`hook`) ─▶ does the policy match the request (`constraints`)
//!   ─▶ for each binding that matches: its parameters (`params`)
//!   ─▶ for each parameter: match conditions, validations, audit annotations (`evaluation`)
//!   ─▶ denied, or admitted with warnings (`verdict`)
//! ```
//!
//! There is no audit log: what policies would write to it is computed, since it may fail, and dropped.

mod compiled;
mod dispatch;
mod evaluation;
mod hook;
mod params;
mod schema;
mod type_check;
mod verdict;

pub(crate) use compiled::compile;
pub(super) use dispatch::judge;
pub(super) use hook::Hook;
pub(crate) use type_check::warnings as type_warnings;
