//! Ownership of fields, as server-side apply records it in `metadata.managedFields`.
//!
//! The rules are those of Kubernetes (structured-merge-diff): lists and maps are atomic, sets, or merged by key, as the
//! options of the fields say. Everything here is a pure function of JSON values or of the encodings of objects.

mod atomics;
mod compare;
mod concerned;
mod conflict;
mod custom;
mod element;
mod encoded;
mod entries;
mod json;
mod last_applied;
mod managers;
mod merge;
mod object_set;
mod objects;
mod remove;
mod scale;
mod set;
mod shape;
#[cfg(test)]
mod tests;
mod validate;
mod versions;

use serde_json::Value;

use crate::Kind;

pub use atomics::merge_unowned;
pub use conflict::{ApplyError, Conflict, Conflicts};
pub use element::PathElement;
pub(crate) use json::Name;
pub use last_applied::LAST_APPLIED;
pub use managers::{Edit, ManagerId, Managers, Operation};
pub use objects::{apply, apply_for, create, document, keep_times, other_versions, settle, update};
pub use scale::{of_scale, to_parent};
pub use set::FieldSet;
pub(crate) use shape::{Shape, Structure};
pub use validate::validate;

/// Returns the fields of a document of this kind: its leaves, the keys of maps, and the entries of lists.
///
/// # Errors
/// If an entry of a list has no key.
pub fn set_of(kind: &Kind, document: &Value) -> Result<FieldSet, String> {
    object_set::of(Structure::of(kind).shape(), document)
}
