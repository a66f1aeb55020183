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
//! Audit annotations, and validations that do not hold where an action is `Audit`, are annotations of the events of the
//! request ([`crate::request::audit`]); they are computed without audit, too, since they may fail.
//!
//! * A mutation is a typed object (`Object{…}`) that is merged as server-side apply does, without owners and without
//!   atomic lists, maps and objects, or a JSON patch (`JSONPatch{…}`); defaults are set again after each. Policies are
//!   evaluated before webhooks are called, and both have a second pass, as upstream. Connections (`exec`, `attach`,
//!   `portforward`, `proxy`) are validated, too.
//! * Policies and bindings are those of the watch cache, as upstream's are those of its informers: one that was just
//!   created takes effect when the cache has it. A policy is compiled once for each generation; without bindings, a
//!   write costs one look into the cache.
//! * Expressions are those of `setpoint-cel`, with upstream's budgets of cost: 1 000 000 for one expression, 10 000 000
//!   for the validations of a policy and for each mutation, 2 500 000 for match conditions.
//! * `authorizer` answers as the gateway decides about requests. The background task of policies checks the types of
//!   expressions, and writes `status.typeChecking`.

mod dispatch;
mod evaluation;
mod hook;
mod invocation;
mod mutating;
mod params;
mod verdict;

pub(super) use dispatch::validate;
pub(super) use hook::Hook;
pub(super) use mutating::{Pass, mutate};
