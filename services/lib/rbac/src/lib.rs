//! Role-based access control, without I/O.
//!
//! [`Index`] decides about requests. It is kept up to date with roles and bindings one by one, and a decision costs the
//! same with few bindings and with many: the roles that allow a request are found by its verb, group and resource, the
//! roles that its user holds by the names of the user and its groups, and a request is allowed if both have a role in
//! common.
//!
//! [`covers`] tells which rules somebody may not grant, [`aggregate`] returns the rules of an aggregated ClusterRole,
//! [`bootstrap`] the roles that every cluster has, and [`reconcile`] completes those that exist.

mod aggregation;
pub mod bootstrap;
mod coverage;
mod decision;
mod index;
pub mod reconcile;
mod request;
mod roles;
mod slab;
mod subjects;
mod symbols;
mod table;

pub use aggregation::aggregate;
pub use coverage::{covers, escalation};
pub use decision::Decision;
pub use index::{Index, MissingRole, Rules};
pub use request::{Request, Resource, Target, User};
