//! Ownership of fields, as server-side apply records it in `metadata.managedFields`.
//!
//! The rules are those of Kubernetes (structured-merge-diff): lists and maps are atomic, sets, or merged by key, as the
//! options of the fields say. Everything here is a pure function of JSON values or of the encodings of objects.
//!
//! A set of fields is a tree of paths. The options `list` and `key` of a field in proto say whether lists and maps are
//! atomic, sets, or merged by key; `rules.rs` lists the messages that are atomic.
//!
//! * A create records the fields of the request with its defaults, before admission: what the gateway adds has no
//!   owner.
//! * An update or a patch records the fields that it has changed. Nobody owns a field that such a write resets
//!   (`STATUS_RESETS` of the kind). Only managers that own something in a part (metadata, spec, status) with changes
//!   are decoded.
//! * Both compare two encodings, that of an object without fields for a create (`encoded.rs`): most objects are never
//!   applied, and what is the same in both need not be decoded. Objects of custom kinds, and values that can be encoded
//!   in several ways, are compared as documents, and so is everything that is applied.
//! * An apply merges its configuration, removes what only its manager owned and now leaves out, and refuses to change
//!   fields of other managers without `force`. If nothing changes, times included, nothing is written.
//! * An object whose managed fields were cleared is not tracked until it is applied.

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
