//! Read-your-writes: a key waits until the caches have reached the revisions that were written for it.
//!
//! 2026-11: we chose revisions over expectations (client-go's counters with a time limit of five minutes), because a
//! revision says exactly when the cache has the write, also after a crash of a handler and for updates. Wrong if
//! revisions of the kinds that a reconcile writes were not comparable.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_model::{Key, Revision};
use setpoint_proto::Resource;
use tokio::time::timeout;

use crate::informer::{Moment, Progress};
use crate::{Reader, Receipt, View};

/// The time limit of a wait for a key: caches are usually milliseconds behind.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The time limit of a wait for a batch.
const BATCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The revisions that were written for each key, and the progress of the caches of their kinds.
///
/// Writes of kinds without a cache here are not waited for.
#[derive(Default)]
pub struct Barrier {
    caches: HashMap<&'static str, Progress>,
    wrote: Mutex<HashMap<Key, Vec<Awaited>>>,
}

/// A write that its cache may not hold yet.
#[derive(Clone, Copy)]
struct Awaited {
    receipt: Receipt,
    /// When it was committed; a store that is restored later may have lost it.
    since: Moment,
}

impl Barrier {
    /// Adds a cache to wait for.
    pub fn watch<V: View>(&mut self, reader: &Reader<V>) {
        self.caches.insert(V::Object::RESOURCE, reader.progress());
    }

    /// Returns a barrier over the same caches without writes.
    pub(crate) fn fresh(&self) -> Self {
        Self {
            caches: self.caches.clone(),
            wrote: Mutex::default(),
        }
    }

    /// Adds writes for the key.
    pub fn wrote(&self, key: &Key, receipts: impl IntoIterator<Item = Receipt>) {
        let awaited = |receipt: Receipt| {
            let since = self.caches.get(receipt.resource)?.now();
            Some(Awaited { receipt, since })
        };
        let mut awaited = receipts.into_iter().filter_map(awaited).peekable();
        if awaited.peek().is_none() {
            return;
        }
        let mut wrote = self.wrote.lock();
        let kept = wrote.entry(key.clone()).or_default();
        awaited.for_each(|write| keep(kept, write));
    }

    /// Waits until the caches have reached the writes for the key. Returns `false` if they take too long; the key must
    /// not be reconciled then, but retried later.
    pub async fn reached(&self, key: &Key) -> bool {
        let Some(writes) = self.wrote.lock().get(key).cloned() else {
            return true;
        };
        let all = timeout(TIMEOUT, self.all_hold(&writes)).await.is_ok();
        if all {
            self.wrote.lock().remove(key);
        }
        all
    }

    /// Is [`Self::reached`] for all keys at once.
    pub async fn all_reached(&self) -> bool {
        let mut newest = Vec::new();
        for writes in self.wrote.lock().values() {
            writes.iter().for_each(|write| keep(&mut newest, *write));
        }
        let all = timeout(BATCH_TIMEOUT, self.all_hold(&newest)).await.is_ok();
        if all {
            self.wrote.lock().clear();
        }
        all
    }

    /// Returns whether a write for the key has not been waited for.
    pub fn awaits(&self, key: &Key) -> bool {
        self.wrote.lock().contains_key(key)
    }

    /// Waits until every cache has reached the revision.
    pub async fn all_reach(&self, revision: Revision) {
        for cache in self.caches.values() {
            cache.reach(revision).await;
        }
    }

    async fn all_hold(&self, writes: &[Awaited]) {
        for Awaited { receipt, since } in writes {
            let cache = &self.caches[receipt.resource];
            cache.reach_since(receipt.revision, *since).await;
        }
    }
}

/// Keeps the newest write of each kind.
fn keep(kept: &mut Vec<Awaited>, write: Awaited) {
    let resource = write.receipt.resource;
    match kept.iter_mut().find(|old| old.receipt.resource == resource) {
        Some(old) => {
            old.receipt.revision = old.receipt.revision.max(write.receipt.revision);
            old.since = old.since.max(write.since);
        }
        None => kept.push(write),
    }
}
