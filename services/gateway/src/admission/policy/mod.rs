//! ValidatingAdmissionPolicy and MutatingAdmissionPolicy, as upstream's plugins of those names.
//!
//! ```text
//! policies with bindings (`hook`) ─▶ does the policy match the request (`constraints`)
//!   ─▶ for each binding that matches: its parameters (`invocation`, `params`)
//!   ─▶ for each parameter: match conditions, validations, audit annotations (`evaluation`)
//!      ─▶ denied, or admitted with warnings (`verdict`)
//!   ─▶ or match conditions, and patches in their order (`mutating`)
//! ```
//!
//! There is no audit log: what policies would write to it is computed, since it may fail, and dropped.

mod dispatch;
mod evaluation;
mod hook;
mod invocation;
mod mutating;
mod params;
mod verdict;

pub(super) use dispatch::judge;
pub(super) use hook::Hook;
pub(super) use mutating::{Pass, mutate};
