//! The data that a store returns: entries, pages of entries, and changes.

use std::sync::Arc;

use bytes::Bytes;
use setpoint_model::Revision;
use setpoint_proto::Cause;

/// The form in which a value is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As it would be stored now.
    #[default]
    Current,
    /// Encrypted by another key, or not at all. The next write stores it anew (upstream: a stale value).
    Stale,
    /// Encrypted, and it could not be decrypted, for this reason. The value is what is stored.
    Untransformable(Arc<str>),
}

/// A stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key; see [`keys`](super::keys).
    pub key: String,
    /// The envelope of an object.
    pub value: Bytes,
    /// The revision of the last write.
    pub revision: Revision,
    /// The form in which the value is stored.
    pub form: Form,
}

/// The entries to list.
#[derive(Clone, Debug, Default)]
pub struct Range {
    /// The prefix of their keys.
    pub prefix: String,
    /// The key after which the page begins.
    pub after: Option<String>,
    /// The largest number of entries; 0 for all. A page has fewer if the entries are very large.
    pub limit: usize,
    /// The revision to read at; `None` for the newest.
    pub at: Option<Revision>,
    /// Whether to leave the values of the entries empty.
    pub keys_only: bool,
}

impl Range {
    /// Returns the range of all entries with a prefix, at the newest revision.
    pub fn all(prefix: impl Into<String>) -> Self {
        Self {
            prefix: prefix.into(),
            ..Self::default()
        }
    }
}

/// Entries at one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The entries in key order.
    pub entries: Vec<Entry>,
    /// The revision at which they were read.
    pub revision: Revision,
    /// The number of entries that follow in the range.
    pub remaining: usize,
}

/// The changes of one revision.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The revision; greater than that of the batch before.
    pub revision: Revision,
    /// The changes; empty if the write was outside of [`keys::ROOT`](super::keys::ROOT).
    pub changes: Vec<Change>,
}

/// A put or a deletion of one entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The key; see [`keys`](super::keys).
    pub key: String,
    /// The new envelope; `None` for a deletion.
    pub value: Option<Bytes>,
    /// The cause of a deletion. The cause of a put is in its envelope.
    pub cause: Option<Cause>,
    /// The form in which the value is stored.
    pub form: Form,
}

/// A change of one key, from its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyChange {
    /// The revision of the change.
    pub revision: Revision,
    /// The new value; `None` for a deletion.
    pub value: Option<Bytes>,
}
