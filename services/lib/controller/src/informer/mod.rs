//! A cache of all objects of a kind, kept up to date by one watch.
//!
//! Guarantees:
//! * Readers and handlers see states that existed, in order for each object; some states may be skipped.
//! * A handler that is called for a change can read it: the cache is updated first, then its indexes, then the handlers
//!   are called, and then [`Reader::reached`] advances.
//! * An interrupted initial list is not [synced](Reader::synced), and a relist replaces the cache in one step once it is
//!   complete.
//! * A deletion that was missed while the watch was interrupted is reported after the relist.
//! * An object of the same name with another uid is a deletion, then an addition.

mod phase;
mod progress;
mod reader;
mod store;
mod watching;

use std::sync::Arc;

use setpoint_model::Revision;
use setpoint_proto::{Cause, Resource as _};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

pub(crate) use progress::{Moment, Progress};
pub use reader::Reader;

use crate::client::ListOptions;
use crate::{Client, View};
use phase::Phase;
use reader::Cache;

/// One change of one object.
pub struct Delta<V> {
    /// The former version; `None` for a new object.
    pub old: Option<Arc<V>>,
    /// The new version; `None` for a deleted object.
    pub new: Option<Arc<V>>,
    /// The cause of the write, if it is known.
    pub cause: Option<Cause>,
    /// The revision of the write.
    pub revision: Revision,
}

type Handler<V> = Box<dyn FnMut(&Delta<V>) + Send>;

/// Keeps a cache of the objects of the view's kind, which its [`Reader`]s read.
///
/// It is idle until [`Informer::run`].
pub struct Informer<V> {
    gateway: Client,
    selection: ListOptions,
    phase: Phase<V>,
    cache: Arc<Cache<V>>,
    handlers: Vec<Handler<V>>,
}

impl<V: View> Informer<V> {
    pub(crate) fn new(gateway: Client) -> Self {
        Self {
            gateway,
            selection: ListOptions::default(),
            phase: Phase::Empty,
            cache: Arc::default(),
            handlers: Vec::new(),
        }
    }

    /// Restricts the cache to the selected objects.
    #[must_use]
    pub fn only(mut self, selection: ListOptions) -> Self {
        self.selection = selection;
        self
    }

    /// Calls `handler` with every change, in order, after the cache shows it.
    ///
    /// It runs in the informer's task and should only enqueue work. If it panics, it misses that change.
    #[must_use]
    pub fn on_event(mut self, handler: impl FnMut(&Delta<V>) + Send + 'static) -> Self {
        self.handlers.push(Box::new(handler));
        self
    }

    /// Returns a reader of the cache.
    pub fn reader(&self) -> Reader<V> {
        Reader::new(self.cache.clone())
    }

    /// Fills the cache and keeps it up to date until `shutdown`. A lost watch is resumed at the revision that it reached.
    ///
    /// After a panic it relists; readers see the former cache until then.
    pub async fn run(self, shutdown: CancellationToken) {
        let tasks = self.gateway.tasks().clone();
        let informer = Mutex::new(self);
        let start = || async { informer.lock().await.keep_watching().await };
        let watching = tasks.supervise("informer", V::Object::RESOURCE, start);
        shutdown.run_until_cancelled(watching).await;
    }
}
