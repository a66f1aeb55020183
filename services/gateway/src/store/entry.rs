//! What a store gives back: entries, pages of them, and changes.

use bytes::Bytes;
use setpoint_model::Revision;
use setpoint_proto::Cause;

/// One stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// As in [`keys`](super::keys).
    pub key: String,
    /// An envelope.
    pub value: Bytes,
    /// Its last write.
    pub revision: Revision,
}

/// Which entries to list.
#[derive(Clone, Debug, Default)]
pub struct Range {
    /// Keys that begin with this.
    pub prefix: String,
    /// Only keys after this one.
    pub after: Option<String>,
    /// At most so many; 0: all. A page has fewer where they are very large.
    pub limit: usize,
    /// As things stood then; `None`: newest.
    pub at: Option<Revision>,
    /// Without their values: those of the page are empty.
    pub keys_only: bool,
}

impl Range {
    /// Everything under the prefix, newest.
    pub fn all(prefix: impl Into<String>) -> Self {
        Self {
            prefix: prefix.into(),
            ..Self::default()
        }
    }
}

/// Entries in key order, all as they stood at one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// In key order.
    pub entries: Vec<Entry>,
    /// When this was true.
    pub revision: Revision,
    /// How many follow in the range.
    pub remaining: usize,
}

/// All that happened at one revision.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Greater than that of the batch before.
    pub revision: Revision,
    /// Empty when the write was outside of [`keys::ROOT`](super::keys::ROOT).
    pub changes: Vec<Change>,
}

/// One entry put or deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// As in [`keys`](super::keys).
    pub key: String,
    /// The new envelope; `None`: deleted.
    pub value: Option<Bytes>,
    /// Why it was deleted. The cause of a put stands in its envelope.
    pub cause: Option<Cause>,
}
