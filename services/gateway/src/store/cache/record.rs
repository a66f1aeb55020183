//! One change in the log, and what it means to each watcher.

use std::sync::{Arc, OnceLock};

use prost::Message;
use setpoint_model::Revision;
use setpoint_proto::{Cause, EventType};

use super::{Cached, Event, Filter};

const LEASES: &str = "leases";

/// The part of a Lease that names its holder.
#[derive(Message)]
struct Held {
    #[prost(message, optional, tag = "2")]
    spec: Option<HeldSpec>,
}

#[derive(Message)]
struct HeldSpec {
    #[prost(string, optional, tag = "1")]
    holder: Option<String>,
}

fn holder(lease: &Cached) -> Option<String> {
    Held::decode(lease.raw.as_ref()).ok()?.spec?.holder
}

/// What became of one object at one revision. One of `old` and `new` is set.
#[derive(Debug)]
pub(super) struct Record {
    pub revision: Revision,
    pub old: Option<Arc<Cached>>,
    pub new: Option<Arc<Cached>>,
    /// Why it was deleted.
    pub cause: Option<Cause>,
    /// What those are told who lose sight of the object; made for the first of them.
    gone: OnceLock<Arc<Cached>>,
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
            gone: OnceLock::new(),
        }
    }

    /// What a watcher with this filter is told, if anything.
    pub fn event(&self, filter: &Filter) -> Option<Event> {
        let seen = |object: &&Arc<Cached>| filter.matches(object);
        match (
            self.old.as_ref().filter(seen),
            self.new.as_ref().filter(seen),
        ) {
            (None, None) => None,
            (None, Some(new)) => Some(Event::new(EventType::Added, new.clone())),
            (Some(_), Some(new)) => Some(Event::new(EventType::Modified, new.clone())),
            (Some(old), None) => Some(Event::new(EventType::Deleted, self.gone(old))),
        }
    }

    /// The object as it last stood, if this is its end.
    pub fn farewell(&self) -> Option<Arc<Cached>> {
        let old = self.old.as_ref().filter(|_| self.new.is_none())?;
        Some(self.gone(old))
    }

    fn gone(&self, old: &Cached) -> Arc<Cached> {
        let made = self.gone.get_or_init(|| {
            // An object that only left a selector went because of what was written; one that was deleted
            // without a word went, as far as anyone knows, because of what was last written.
            let written = || self.new.as_deref().unwrap_or(old).cause();
            let cause = self.cause.clone().or_else(written);
            Arc::new(old.last_seen_at(self.revision, cause))
        });
        made.clone()
    }

    /// Does another hold the Lease from here on?
    pub fn begins_term(&self) -> bool {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) if new.kind.plural == LEASES => {
                let now = holder(new).filter(|holder| !holder.is_empty());
                now.is_some() && now != holder(old)
            }
            _ => false,
        }
    }

    /// Its share of the log's budget.
    pub fn size(&self) -> usize {
        let objects = self.old.iter().chain(&self.new);
        size_of::<Self>() + objects.map(|object| object.size()).sum::<usize>()
    }
}
