//! What the cache is asked for, and what it answers with.

use std::sync::Arc;

use futures::stream::BoxStream;
use setpoint_model::{Key, Revision};
use setpoint_proto::{ApiError, EventType};

use super::{Cached, Filter};

/// How old an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtLeast {
    /// As old as whatever is at hand.
    Any,
    /// Not older than this revision.
    Revision(Revision),
    /// As new as every write acknowledged before the question.
    Newest,
}

/// Objects as they all stood at one revision.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// When this was true.
    pub revision: Revision,
    /// In key order.
    pub items: Vec<Arc<Cached>>,
}

/// Part of a list as it stood at one revision.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// In key order.
    pub items: Vec<Arc<Cached>>,
    /// Where the next page begins: after this key.
    pub last: Option<Key>,
    /// How many objects follow, selected or not.
    pub remaining: usize,
}

/// What to watch, and from where.
#[derive(Clone, Debug)]
pub struct WatchSpec {
    /// What to be told of.
    pub filter: Filter,
    /// From where.
    pub start: Start,
    /// Be told how far it has come when nothing else is to be told, and when the initial state is complete.
    pub bookmarks: bool,
}

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the changes after this revision.
    After(Revision),
    /// With the next change.
    Now,
    /// With all there is, not older than asked, each as `Added`.
    Initial(AtLeast),
}

/// Something to tell a watcher.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub r#type: EventType,
    /// To what; of a bookmark, only kind and resourceVersion are set.
    pub object: Arc<Cached>,
    /// On the bookmark that ends the initial state.
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

/// Events in order. It ends after an error, and only then.
pub type Watch = BoxStream<'static, Result<Event, ApiError>>;
