//! Triggers: the sources of a controller's keys.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, ready};
use setpoint_model::Key;
use setpoint_proto::Cause;
use tokio::sync::watch;

use crate::metrics::Reconciles;
use crate::queue::Load;
use crate::{Delta, Queue, Reader, View};

/// A handle of a controller's queue, which exists only while the controller leads: otherwise nothing is added. Clones
/// are the same.
#[derive(Clone)]
pub struct QueueHandle(watch::Sender<Option<Current>>);

/// The queue and the metrics of one term.
struct Current {
    queue: Queue<Key>,
    metrics: Option<Arc<Reconciles>>,
}

impl Default for QueueHandle {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl From<Queue<Key>> for QueueHandle {
    /// Returns a handle of a queue without a controller, for tests.
    fn from(queue: Queue<Key>) -> Self {
        let metrics = None;
        Self(watch::Sender::new(Some(Current { queue, metrics })))
    }
}

impl QueueHandle {
    /// Adds a key; see [`Queue::add`].
    pub fn add(&self, key: Key, cause: Option<Cause>) {
        if let Some(current) = &*self.0.borrow() {
            current.queue.add(key, cause);
        }
    }

    /// Adds a key after a delay; see [`Queue::add_after`].
    pub fn add_after(&self, key: Key, delay: Duration) {
        if let Some(current) = &*self.0.borrow() {
            current.queue.add_after(key, delay);
        }
    }

    /// Runs work for each term from its beginning, and drops it at its end. Never returns.
    pub async fn in_each_term<F: Future<Output = ()>>(&self, mut work: impl FnMut() -> F) {
        let mut current = self.0.subscribe();
        // `self` owns the sender, so that waiting cannot fail.
        while current.wait_for(Option::is_some).await.is_ok() {
            tokio::select! {
                _ = current.changed() => {}
                () = async { work().await; std::future::pending().await } => {}
            }
        }
    }

    /// Returns the load; `None` while another replica leads.
    pub fn load(&self) -> Option<Load> {
        self.0.borrow().as_ref().map(|current| current.queue.load())
    }

    pub(super) fn open(&self, queue: &Queue<Key>, metrics: &Arc<Reconciles>) {
        self.0.send_replace(Some(Current {
            queue: queue.clone(),
            metrics: Some(metrics.clone()),
        }));
    }

    pub(super) fn close(&self) {
        self.0.send_replace(None);
    }

    /// Adds the keys that a change of another object concerns.
    pub(super) fn concerned<V>(&self, delta: &Delta<V>, keys: impl FnOnce(&Delta<V>) -> Vec<Key>) {
        if let Some(current) = &*self.0.borrow() {
            let add = |key| current.queue.add(key, delta.cause.clone());
            keys(delta).into_iter().for_each(add);
        }
    }

    /// Adds the keys of an object that has changed: those that it had and those that it has now.
    pub(super) fn changed<V: View, K: IntoIterator<Item = Key>>(
        &self,
        delta: &Delta<V>,
        key_of: impl Fn(&V) -> K,
    ) {
        let Some(current) = &*self.0.borrow() else {
            return;
        };
        let mut keys = Vec::new();
        for view in delta.old.iter().chain(&delta.new) {
            for key in key_of(view) {
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        if is_new_generation(delta, &keys) {
            current.metrics.iter().for_each(|metrics| metrics.changed());
        }
        for key in keys {
            current.queue.add(key, delta.cause.clone());
        }
    }
}

/// Returns whether the change is a new generation of a reconciled object, that is, of one whose own key is added.
fn is_new_generation<V: View>(delta: &Delta<V>, keys: &[Key]) -> bool {
    let Some(new) = delta.new.as_ref().map(|view| view.meta()) else {
        return false;
    };
    let old = delta.old.as_ref().map(|view| view.meta().generation);
    keys.contains(&new.key) && old != Some(new.generation)
}

/// A source of keys.
pub(super) trait Trigger: Send + Sync {
    /// Waits until it is complete.
    fn synced(&self) -> BoxFuture<'_, ()>;
    /// Adds all of its keys, with the cause of the last change if it is known.
    fn sweep(&self, add: &mut dyn FnMut(Key, Option<&Cause>));
}

/// A cache whose objects have keys.
pub(super) struct Watched<V, F> {
    pub(super) reader: Reader<V>,
    pub(super) key_of: Arc<F>,
}

impl<V: View, K: IntoIterator<Item = Key>, F: Fn(&V) -> K + Send + Sync> Trigger for Watched<V, F> {
    fn synced(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.reader.synced())
    }

    /// Adds the objects that changed last first: the former leader may not have finished them.
    fn sweep(&self, add: &mut dyn FnMut(Key, Option<&Cause>)) {
        let mut found = Vec::new();
        self.reader.for_each(|view, cause| {
            let keys = (self.key_of)(view).into_iter();
            found.extend(keys.map(|key| (view.meta().revision, key, cause.cloned())));
        });
        found.sort_by_key(|(revision, ..)| Reverse(*revision));
        for (_, key, cause) in found {
            add(key, cause.as_ref());
        }
    }
}

/// A cache whose changes concern objects that have a cache of their own.
pub(super) struct Synced<V>(pub(super) Reader<V>);

impl<V: View> Trigger for Synced<V> {
    fn synced(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.synced())
    }

    fn sweep(&self, _: &mut dyn FnMut(Key, Option<&Cause>)) {}
}

/// Keys that are in no cache.
pub(super) struct Others<F>(pub(super) F);

impl<F: Fn() -> Vec<Key> + Send + Sync> Trigger for Others<F> {
    fn synced(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    fn sweep(&self, add: &mut dyn FnMut(Key, Option<&Cause>)) {
        (self.0)().into_iter().for_each(|key| add(key, None));
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use crate::queue::Limiter;

    #[tokio::test(start_paused = true)]
    async fn work_is_begun_in_each_term_and_dropped_at_its_end() {
        /// Notes when it is dropped.
        struct Ended<'a>(&'a Mutex<Vec<&'static str>>);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.lock().push("ended");
            }
        }
        let (handle, noted) = (QueueHandle::default(), Mutex::new(Vec::<&str>::new()));
        let noted = &noted;
        let queue = Queue::new("test", Limiter::default());
        let metrics = Arc::new(Reconciles::new("test", 1));
        let work = handle.in_each_term(|| async {
            noted.lock().push("begun");
            let _ended = Ended(noted);
            std::future::pending().await
        });
        let terms = async {
            let pause = || tokio::time::sleep(Duration::from_millis(1));
            pause().await;
            assert!(noted.lock().is_empty());
            handle.open(&queue, &metrics);
            pause().await;
            assert_eq!(*noted.lock(), ["begun"]);
            // Two terms that follow each other at once are two terms.
            handle.close();
            handle.open(&queue, &metrics);
            pause().await;
            assert_eq!(*noted.lock(), ["begun", "ended", "begun"]);
            handle.close();
            pause().await;
            assert_eq!(*noted.lock(), ["begun", "ended", "begun", "ended"]);
        };
        tokio::select! {
            () = work => unreachable!("it never returns"),
            () = terms => {}
        }
    }
}
