//! Role-based access control, without I/O.
//!
//! [`Index`] decides about requests. It is kept up to date with roles and bindings one by one, and a decision costs the
//! same with few bindings and with many: the roles that allow a request are found by its verb, group and resource, the
//! roles that its user holds by the names of the user and its groups, and a request is allowed if both have a role in
//! common.
//!
//! [`covers`] tells which rules somebody may not grant, [`aggregate`] returns the rules of an aggregated ClusterRole,
//! [`bootstrap`] the roles that every cluster has, and [`reconcile`] completes those that exist.
//!
//! # Decisions
//!
//! * 2026-11: we chose to index the rules of each role once, and the roles of each subject apart from them, over one
//!   index of what each subject may do: a role of five hundred combinations in ten thousand bindings would have five
//!   million entries there, and each change of the role would write them all. Wrong if users hold thousands of roles in
//!   one namespace that have nothing to do with the request, which thousands of other roles allow.

mod aggregation;
pub mod bootstrap;
mod coverage;
mod decision;
mod index;
pub mod reconcile;
mod request;
mod roles;
mod rule;
mod slab;
mod subjects;
mod symbols;
mod table;

pub use aggregation::aggregate;
pub use coverage::{comparison_size, covers, escalation};
pub use decision::Decision;
pub use index::{Index, MissingRole, Rules};
pub use request::{Request, Resource, Target, User};
