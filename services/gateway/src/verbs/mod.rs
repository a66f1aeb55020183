//! The verbs of the API, as methods of [`Registry`](crate::registry::Registry).

mod aggregated;
pub(crate) mod apply;
pub(crate) mod binding;
mod connect;
pub(crate) mod create;
#[warn(clippy::arithmetic_side_effects)]
pub(crate) mod delete;
mod delete_unreadable;
pub(crate) mod eviction;
pub(crate) mod patch;
pub(crate) mod read;
#[cfg(test)]
mod tests;
mod token;
pub(crate) mod update;

pub use delete::Deleted;
pub use patch::{Check, Patch};
pub use read::{List, ListParams, RevisionMatch};
