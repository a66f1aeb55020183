//! Admission by policies: ValidatingAdmissionPolicy, as upstream's plugin of that name.
//!
//! A write that is valid passes, before it is committed,
//!
//! ```text
//! policies with bindings (`hooks`) ─▶ does the policy match the request (`constraints`)
//!   ─▶ for each binding that matches: its parameters (`params`)
//!   ─▶ for each parameter: match conditions, validations, audit annotations (`evaluation`)
//!   ─▶ denied, or admitted with warnings (`verdict`)
//! ```
//!
//! Expressions are compiled once for each version of a policy (`compiled`). Without bindings, a write costs one look into the cache.
//! Parts of a request that was admitted, such as the deletion by an eviction, are not admitted again. There is no audit log: what
//! policies would write to it is computed, since it may fail, and dropped.

mod attributes;
mod authorizer;
mod compiled;
mod constraints;
mod dispatch;
mod environment;
mod evaluation;
mod hooks;
mod params;
mod request;
mod schema;
mod type_check;
mod verdict;

pub(crate) use attributes::{Attributes, Operation};
pub(crate) use compiled::{Compiled, compile};
pub(crate) use environment::Types;
pub(crate) use hooks::Hooks;
pub(crate) use type_check::warnings as type_warnings;
