//! Turns what the store holds into what the cache holds: page by page at first, change by change after that.

use std::sync::Arc;

use setpoint_codec::Kind;
use setpoint_model::{Key, Revision};
use setpoint_proto::Cause;

use super::state::{Shelves, empty_shelves};
use super::{Cached, metrics};
use crate::store::{Batch, Change, Entry, Error, Range, Store, keys};

/// Entries per page. One of 5 000 costs etcd no more CPU than 500, and less memory here than all at once.
pub(super) const PAGE: usize = 2000;

/// Everything, as it stood at one revision.
pub(super) struct Loaded {
    pub revision: Revision,
    pub shelves: Shelves,
}

/// A revision, made ready outside of the lock.
pub(super) struct Decoded {
    pub revision: Revision,
    pub changes: Vec<DecodedChange>,
}

pub(super) struct DecodedChange {
    pub kind: &'static Kind,
    pub key: Key,
    pub new: Stored<Cached>,
    pub cause: Option<Cause>,
}

/// What stands under a key.
pub(super) enum Stored<T> {
    Nothing,
    Object(T),
    /// A value that is no object, written then. What stood there before is gone.
    Unreadable(Revision),
}

/// Reads everything as it stood at a revision.
pub(super) async fn everything(store: &dyn Store, at: Revision) -> Result<Loaded, Error> {
    let mut shelves = empty_shelves();
    let mut range = Range {
        limit: PAGE,
        at: Some(at),
        ..Range::all(keys::ROOT)
    };
    loop {
        let page = store.list(range.clone()).await?;
        for entry in &page.entries {
            if let Some((kind, key)) = keys::parse(&entry.key)
                && let Some(shelf) = shelves.get_mut(kind.type_url.as_str())
            {
                let stored = read(kind, key.clone(), entry).map(Arc::new);
                shelf.put(&key, Stored::of(stored, entry.revision));
            }
        }
        range.after = page.entries.last().map(|entry| entry.key.clone());
        if page.remaining == 0 {
            return Ok(Loaded {
                revision: at,
                shelves,
            });
        }
    }
}

/// The object in an entry; `None` if it is of no kind that is known here, or cannot be read.
pub(super) fn object(entry: &Entry) -> Option<Arc<Cached>> {
    let (kind, key) = keys::parse(&entry.key)?;
    read(kind, key, entry).map(Arc::new)
}

fn read(kind: &'static Kind, key: Key, entry: &Entry) -> Option<Cached> {
    let read = Cached::read(kind, key, entry).inspect_err(|error| {
        tracing::error!(key = entry.key, %error, "passed over a value that cannot be read");
        metrics::undecodable(kind);
    });
    read.ok()
}

impl<T> Stored<T> {
    pub fn object(&self) -> Option<&T> {
        match self {
            Self::Object(object) => Some(object),
            Self::Nothing | Self::Unreadable(_) => None,
        }
    }

    pub fn into_object(self) -> Option<T> {
        match self {
            Self::Object(object) => Some(object),
            Self::Nothing | Self::Unreadable(_) => None,
        }
    }

    fn of(read: Option<T>, revision: Revision) -> Self {
        read.map_or(Self::Unreadable(revision), Self::Object)
    }
}

pub(super) fn decode(batch: Batch) -> Decoded {
    let revision = batch.revision;
    let changes = batch.changes.into_iter();
    Decoded {
        revision,
        changes: changes
            .filter_map(|change| decode_change(change, revision))
            .collect(),
    }
}

fn decode_change(change: Change, revision: Revision) -> Option<DecodedChange> {
    let (kind, key) = keys::parse(&change.key)?;
    let new = match change.value {
        None => Stored::Nothing,
        Some(value) => {
            let entry = Entry {
                key: change.key,
                value,
                revision,
            };
            Stored::of(read(kind, key.clone(), &entry), revision)
        }
    };
    Some(DecodedChange {
        kind,
        key,
        new,
        cause: change.cause,
    })
}
