//! A controller reads its own writes: a key rests until the caches hold what was written for it.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_model::{Key, Revision};
use setpoint_proto::Resource;
use tokio::time::timeout;

use crate::informer::Progress;
use crate::{Reader, Receipt, View};

/// How long a worker waits before it turns to other keys: caches are usually milliseconds behind.
const PATIENCE: Duration = Duration::from_secs(1);

/// Knows which revisions were written for each key, and how far the caches of the written kinds are.
///
/// Writes of kinds that have no cache here are nothing to wait for.
#[derive(Default)]
pub struct Barrier {
    caches: HashMap<&'static str, Progress>,
    wrote: Mutex<HashMap<Key, Vec<Receipt>>>,
}

impl Barrier {
    /// Also waits for this cache.
    pub fn watch<V: View>(&mut self, reader: &Reader<V>) {
        self.caches.insert(V::Object::RESOURCE, reader.progress());
    }

    /// The same caches, and nothing written yet.
    pub(crate) fn fresh(&self) -> Self {
        Self {
            caches: self.caches.clone(),
            wrote: Mutex::default(),
        }
    }

    /// This was written for the key.
    pub fn wrote(&self, key: &Key, receipts: impl IntoIterator<Item = Receipt>) {
        let known = |receipt: &Receipt| self.caches.contains_key(receipt.resource);
        let mut receipts = receipts.into_iter().filter(known).peekable();
        if receipts.peek().is_none() {
            return;
        }
        let mut wrote = self.wrote.lock();
        let kept = wrote.entry(key.clone()).or_default();
        receipts.for_each(|receipt| keep(kept, receipt));
    }

    /// Waits until the caches hold what was written for the key; `false` if they take too long.
    ///
    /// Then the key must not be acted upon: look again later.
    pub async fn reached(&self, key: &Key) -> bool {
        let Some(receipts) = self.wrote.lock().get(key).cloned() else {
            return true;
        };
        let all = timeout(PATIENCE, self.all_hold(&receipts)).await.is_ok();
        if all {
            self.wrote.lock().remove(key);
        }
        all
    }

    /// Waits until every cache has seen everything up to this revision.
    pub async fn all_reach(&self, revision: Revision) {
        for cache in self.caches.values() {
            cache.reach(revision).await;
        }
    }

    async fn all_hold(&self, receipts: &[Receipt]) {
        for receipt in receipts {
            self.caches[receipt.resource].reach(receipt.revision).await;
        }
    }
}

/// One receipt per kind is enough: the newest.
fn keep(kept: &mut Vec<Receipt>, receipt: Receipt) {
    match kept.iter_mut().find(|old| old.resource == receipt.resource) {
        Some(old) => old.revision = old.revision.max(receipt.revision),
        None => kept.push(receipt),
    }
}
