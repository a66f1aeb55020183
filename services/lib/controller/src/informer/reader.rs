//! A look at an informer's copy, and waits until that copy is new enough.

use std::sync::Arc;

use parking_lot::RwLock;
use setpoint_model::{Key, Revision};
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

/// A look at an informer's copy. Clones look at the same one.
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

    /// The object of this name.
    pub fn get(&self, key: &Key) -> Option<Arc<V>> {
        let store = self.cache.store.read();
        store.get(key).map(|cached| cached.view.clone())
    }

    /// All objects, in the order of their keys.
    pub fn list(&self) -> Vec<Arc<V>> {
        collect(self.cache.store.read().iter())
    }

    /// The objects of one namespace, in the order of their names.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<V>> {
        collect(self.cache.store.read().in_namespace(namespace))
    }

    /// The objects whose controller is this one, in the order of their keys.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<V>> {
        collect(self.cache.store.read().owned_by(uid))
    }

    /// The objects with this [`View::tag`], in the order of their keys.
    pub fn tagged(&self, tag: &str) -> Vec<Arc<V>> {
        collect(self.cache.store.read().tagged(tag))
    }

    /// Visits every object and the cause of its last change. The informer waits meanwhile: be quick.
    pub fn for_each(&self, mut visit: impl FnMut(&V, Option<&Cause>)) {
        for cached in self.cache.store.read().iter() {
            visit(&cached.view, cached.cause.as_deref());
        }
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.cache.store.read().len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Has the copy been complete at least once?
    pub fn has_synced(&self) -> bool {
        self.cache.progress.reached().is_some()
    }

    /// The revision up to which the copy has seen everything; the lowest of all before it is complete.
    pub fn reached(&self) -> Revision {
        self.cache.progress.reached().unwrap_or_default()
    }

    /// Waits until the copy is complete.
    pub async fn synced(&self) {
        self.cache.progress.synced().await;
    }

    /// Waits until the copy holds `revision`, so that a controller reads its own writes, or its predecessor's.
    ///
    /// If nothing comes meanwhile, the informer fetches the state anew, which ends the wait even if the store was restored
    /// and the revision is lost. All that may take for ever while the gateway is away: bound it by a deadline.
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
