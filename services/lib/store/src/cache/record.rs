//! The records of the log: changes of objects, from which each watcher derives its event.

use std::sync::{Arc, OnceLock};

use setpoint_model::Revision;
use setpoint_proto::{Cause, EventType};

use super::{Cached, Event, Filter};

/// A change of one object; without `old` and `new`, no change, but a number in the log.
#[derive(Debug)]
pub(super) struct Record {
    pub revision: Revision,
    pub old: Option<Arc<Cached>>,
    pub new: Option<Arc<Cached>>,
    /// The cause of a deletion.
    pub cause: Option<Cause>,
    /// The last version of the object at this revision, for watchers whose filter selects it no more. Made on first
    /// use.
    last: OnceLock<Arc<Cached>>,
}

impl Record {
    pub fn new(
        revision: Revision,
        old: Option<Arc<Cached>>,
        new: Option<Arc<Cached>>,
        cause: Option<Cause>,
    ) -> Self {
        Self {
            revision,
            old,
            new,
            cause,
            last: OnceLock::new(),
        }
    }

    /// Returns the event for a watcher with this filter, if there is one.
    pub fn event(&self, filter: &Filter) -> Option<Event> {
        let seen = |object: &&Arc<Cached>| filter.matches(object);
        match (
            self.old.as_ref().filter(seen),
            self.new.as_ref().filter(seen),
        ) {
            (None, None) => None,
            (None, Some(new)) => Some(Event::new(EventType::Added, new.clone())),
            (Some(_), Some(new)) => Some(Event::new(EventType::Modified, new.clone())),
            (Some(old), None) => Some(Event::new(EventType::Deleted, self.last_version(old))),
        }
    }

    /// Returns the last version of the object, if this is its deletion.
    pub fn tombstone(&self) -> Option<Arc<Cached>> {
        let old = self.old.as_ref().filter(|_| self.new.is_none())?;
        Some(self.last_version(old))
    }

    fn last_version(&self, old: &Cached) -> Arc<Cached> {
        let made = self.last.get_or_init(|| {
            // An object that left a selector did so because of the new version. If the cause of a deletion is not
            // known, that of the last version is the best guess.
            let written = || self.new.as_deref().unwrap_or(old).cause();
            let cause = self.cause.clone().or_else(written);
            Arc::new(old.at_deletion(self.revision, cause))
        });
        made.clone()
    }

    /// Returns the size that counts towards the limit of the log, in bytes.
    pub fn size(&self) -> usize {
        let objects = self.old.iter().chain(&self.new);
        size_of::<Self>() + objects.map(|object| object.size()).sum::<usize>()
    }
}
