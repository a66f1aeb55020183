//! A feed of the updates of one kind's objects, or those of all custom kinds, with the versions before and after.

use std::pin::pin;
use std::sync::Arc;

use setpoint_codec::Kind;
use tokio::sync::Notify;

use super::log::Topic;
use super::{Cache, Cached, Shared};

/// The largest number of records that are read under one lock.
const MAX_RECORDS: usize = 64;

/// An update of an object.
#[derive(Clone, Debug)]
pub struct Update {
    /// The version before.
    pub old: Arc<Cached>,
    /// The version after.
    pub new: Arc<Cached>,
}

/// A cursor into the log. If it falls behind the start of the log, it continues with the next record; the missed
/// changes are not reported.
pub struct ChangeFeed {
    shared: Arc<Shared>,
    topic: Topic,
    wake: Arc<Notify>,
    next: u64,
}

impl Cache {
    /// Returns a feed of the updates of a kind's objects from now on. Creations and deletions are left out.
    pub fn changes(&self, kind: &'static Kind) -> ChangeFeed {
        self.feed(Topic::Kind(&kind.stored_as))
    }

    /// Returns a feed of the updates of the objects of all custom kinds, those included that are defined later, from
    /// now on.
    pub fn custom_changes(&self) -> ChangeFeed {
        self.feed(Topic::Custom)
    }

    fn feed(&self, topic: Topic) -> ChangeFeed {
        let shared = self.shared.clone();
        let mut state = shared.state.write();
        let wake = state.log.subscribe(&topic);
        let next = state.log.next();
        drop(state);
        ChangeFeed {
            shared,
            topic,
            wake,
            next,
        }
    }
}

impl ChangeFeed {
    /// Waits for the next changes; `None` after the cache was closed.
    pub async fn next(&mut self) -> Option<Vec<Update>> {
        loop {
            let wake = self.wake.clone();
            let mut woken = pin!(wake.notified());
            // Enabled before the log is read, so that no record is missed in between.
            woken.as_mut().enable();
            let changes = self.read()?;
            if !changes.is_empty() {
                return Some(changes);
            }
            woken.await;
        }
    }

    /// Reads the next changes; empty if the end of the log is reached.
    fn read(&mut self) -> Option<Vec<Update>> {
        let state = self.shared.state.read();
        if state.is_closed() {
            return None;
        }
        loop {
            let Ok((records, next)) = state.log.read(&self.topic, self.next, MAX_RECORDS) else {
                self.next = state.log.next();
                return Some(Vec::new());
            };
            self.next = next;
            let both = records.iter().filter_map(|record| {
                let (old, new) = (record.old.clone()?, record.new.clone()?);
                Some(Update { old, new })
            });
            let changes: Vec<_> = both.collect();
            if !changes.is_empty() || records.is_empty() {
                return Some(changes);
            }
        }
    }
}
