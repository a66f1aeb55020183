//! Triggers: informers, each with a function from an object to the keys to reconcile.

use std::cmp::Reverse;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::RwLock;
use setpoint_model::Key;
use setpoint_proto::Cause;

use crate::metrics::Reconciles;
use crate::{Delta, Queue, Reader, View};

/// The destination of changes: the current term's queue; none while another replica leads.
pub(super) type Inbox = Arc<RwLock<Option<Inlet>>>;

/// The destination of the changes of one term.
pub(super) struct Inlet {
    pub(super) queue: Queue<Key>,
    pub(super) metrics: Arc<Reconciles>,
}

/// Queues the keys of an object that has changed: those that it had and those that it has now.
pub(super) fn wake<V: View, K: IntoIterator<Item = Key>>(
    inlet: &Inlet,
    delta: &Delta<V>,
    key_of: impl Fn(&V) -> K,
) {
    let mut keys = Vec::new();
    for view in delta.old.iter().chain(&delta.new) {
        for key in key_of(view) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    if wants_anew(delta, &keys) {
        inlet.metrics.changed();
    }
    for key in keys {
        inlet.queue.add(key, delta.cause.clone());
    }
}

/// Whether the change is a new generation of a reconciled object, that is of one whose own key is woken.
fn wants_anew<V: View>(delta: &Delta<V>, keys: &[Key]) -> bool {
    let Some(new) = delta.new.as_ref().map(|view| view.meta()) else {
        return false;
    };
    let old = delta.old.as_ref().map(|view| view.meta().generation);
    keys.contains(&new.key) && old != Some(new.generation)
}

/// A cache that wakes keys.
pub(super) trait Trigger: Send + Sync {
    fn synced(&self) -> BoxFuture<'_, ()>;
    /// Every key that its objects wake, with the cause of the object's last change. Those that have changed last come
    /// first: there a former leader may have left something unfinished.
    fn sweep(&self, add: &mut dyn FnMut(Key, Option<&Cause>));
}

pub(super) struct Watched<V, F> {
    pub(super) reader: Reader<V>,
    pub(super) key_of: Arc<F>,
}

impl<V: View, K: IntoIterator<Item = Key>, F: Fn(&V) -> K + Send + Sync> Trigger for Watched<V, F> {
    fn synced(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.reader.synced())
    }

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
