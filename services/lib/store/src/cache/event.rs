//! The arguments and results of reads and watches.

use std::sync::Arc;

use futures::stream::BoxStream;
use setpoint_codec::Kind;
use setpoint_model::{Key, Revision};
use setpoint_proto::{ApiError, EventType};

use super::unreadable::{self, Unreadable};
use super::{Cached, Filter};

/// The least revision that a read may be answered at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtLeast {
    /// The cache's own revision.
    Any,
    /// This revision.
    Revision(Revision),
    /// The newest revision of the store: the read sees every write acknowledged before it.
    Newest,
}

/// Objects at one revision.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The revision.
    pub revision: Revision,
    /// The objects in key order.
    pub items: Vec<Arc<Cached>>,
    /// The values in the scope of the filter that cannot be decoded, in key order.
    pub unreadable: Vec<Unreadable>,
}

impl Snapshot {
    /// Returns the snapshot if all values were decoded.
    ///
    /// # Errors
    /// `StorageReadError`, which names the others.
    pub fn complete(self, kind: &Kind) -> Result<Self, ApiError> {
        match self.unreadable.is_empty() {
            true => Ok(self),
            false => Err(unreadable::error(kind, self.unreadable.iter())),
        }
    }
}

/// A part of a list at one revision.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The objects in key order.
    pub items: Vec<Arc<Cached>>,
    /// The key after which the next page begins.
    pub last: Option<Key>,
    /// The number of objects that follow, including those that are not selected.
    pub remaining: usize,
}

/// The arguments of a watch.
#[derive(Clone, Debug)]
pub struct WatchSpec {
    /// The objects to watch.
    pub filter: Filter,
    /// The start of the watch.
    pub start: Start,
    /// Whether to send bookmarks: at the end of the initial state, at intervals without events, and when the holder
    /// of a Lease changes.
    pub bookmarks: bool,
}

/// The start of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The changes after this revision.
    After(Revision),
    /// The next change.
    Now,
    /// The current state, not older than asked, each object as `Added`; then the changes after it.
    Initial(AtLeast),
}

/// An event of a watch.
#[derive(Clone, Debug)]
pub struct Event {
    /// The type of the event.
    pub r#type: EventType,
    /// The object. That of a bookmark has a kind and a resourceVersion only.
    pub object: Arc<Cached>,
    /// Whether this is the bookmark at the end of the initial state.
    pub initial_events_end: bool,
}

impl Event {
    pub(super) fn new(r#type: EventType, object: Arc<Cached>) -> Self {
        Self {
            r#type,
            object,
            initial_events_end: false,
        }
    }

    pub(super) fn bookmark(filter: &Filter, revision: Revision, initial_events_end: bool) -> Self {
        let object = Cached::bookmark(filter.kind(), revision, initial_events_end);
        Self {
            r#type: EventType::Bookmark,
            object: Arc::new(object),
            initial_events_end,
        }
    }
}

/// Events in order. The stream ends after an error, and only then.
pub type Watch = BoxStream<'static, Result<Event, ApiError>>;
