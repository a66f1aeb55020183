//! Reads an informer's cache, and waits until it has reached a revision.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::RwLock;
use setpoint_model::{Key, Meta, Revision};
use setpoint_proto::Cause;

use super::Progress;
use super::store::{Cached, Store};
use crate::View;

/// The state that an informer and its readers share.
pub(super) struct Cache<V> {
    pub(super) store: RwLock<Store<V>>,
    pub(super) progress: Progress,
}

impl<V> Default for Cache<V> {
    fn default() -> Self {
        Self {
            store: RwLock::default(),
            progress: Progress::default(),
        }
    }
}

/// A reader of an informer's cache. Clones read the same one.
pub struct Reader<V> {
    cache: Arc<Cache<V>>,
}

impl<V> Clone for Reader<V> {
    fn clone(&self) -> Self {
        Self {
            cache: self.cache.clone(),
        }
    }
}

impl<V: View> Reader<V> {
    pub(super) fn new(cache: Arc<Cache<V>>) -> Self {
        Self { cache }
    }

    /// Returns the object with this key.
    pub fn get(&self, key: &Key) -> Option<Arc<V>> {
        let store = self.cache.store.read();
        store.get(key).map(|cached| cached.view.clone())
    }

    /// Returns all objects in the order of their keys.
    pub fn list(&self) -> Vec<Arc<V>> {
        collect(self.cache.store.read().iter())
    }

    /// Returns the objects of a namespace in the order of their names.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<V>> {
        collect(self.cache.store.read().in_namespace(namespace))
    }

    /// Returns the objects whose controller has this uid, in the order of their keys.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<V>> {
        collect(self.cache.store.read().owned_by(uid))
    }

    /// Returns the objects with this [`View::tag`] in the order of their keys.
    pub fn tagged(&self, tag: &str) -> Vec<Arc<V>> {
        collect(self.cache.store.read().tagged(tag))
    }

    /// Returns the objects that `owner` controls, and the orphans of its namespace, whose [`View::tag`] must be
    /// [`orphan_tag`](crate::orphan_tag).
    pub fn candidates(&self, owner: &Meta) -> Vec<Arc<V>> {
        let store = self.cache.store.read();
        let owned = store.owned_by(&owner.uid);
        collect(owned.chain(store.tagged(&owner.key.namespace)))
    }

    /// Calls `visit` with every object and the cause of its last change, under the lock of the cache.
    pub fn for_each(&self, mut visit: impl FnMut(&V, Option<&Cause>)) {
        for cached in self.cache.store.read().iter() {
            visit(&cached.view, cached.cause.as_deref());
        }
    }

    /// Returns when the last change of an object was written, as far as its cause says so.
    pub fn written(&self, key: &Key) -> Option<Timestamp> {
        let store = self.cache.store.read();
        let written = store.get(key)?.cause.as_ref()?.written_ns;
        Timestamp::from_nanosecond(written.into())
            .ok()
            .filter(|_| written > 0)
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.cache.store.read().len()
    }

    /// Returns whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the cache has been complete at least once.
    pub fn has_synced(&self) -> bool {
        self.cache.progress.reached().is_some()
    }

    /// Returns the revision that the cache has reached; the lowest one before it is complete.
    pub fn reached(&self) -> Revision {
        self.cache.progress.reached().unwrap_or_default()
    }

    /// Waits until the cache is complete.
    pub async fn synced(&self) {
        self.cache.progress.synced().await;
    }

    /// Waits until the cache has reached `revision`, so that a controller reads its own writes, or those of the leader
    /// before it.
    ///
    /// Without events the informer relists, which ends the wait even if the store was restored and has lost the
    /// revision. Without a gateway the wait does not end: set a deadline.
    pub async fn reach(&self, revision: Revision) {
        self.cache.progress.reach(revision).await;
    }

    pub(crate) fn progress(&self) -> Progress {
        self.cache.progress.clone()
    }
}

fn collect<'a, V: View>(cached: impl Iterator<Item = &'a Cached<V>>) -> Vec<Arc<V>> {
    cached.map(|cached| cached.view.clone()).collect()
}
