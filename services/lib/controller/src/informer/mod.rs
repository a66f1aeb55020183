//! A cache of all objects of a kind, kept up to date by one watch.
//!
//! Guarantees:
//! * Readers and handlers see states that existed, in order for each object; some states may be skipped.
//! * Whoever is told of a change can already see it: first the cache, then its indexes, then the handlers,
//!   and only then [`Reader::reached`].
//! * An interrupted start is not [synced](Reader::synced), and a copy that is being replaced is served whole until
//!   its successor is complete.
//! * A deletion that happened while the watch was broken is told as soon as it is found out.
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
    /// The former state; `None` for a new object.
    pub old: Option<Arc<V>>,
    /// The new state; `None` for one that is gone.
    pub new: Option<Arc<V>>,
    /// The cause of the write, if it is known.
    pub cause: Option<Cause>,
    /// The revision of the write.
    pub revision: Revision,
}

type Handler<V> = Box<dyn FnMut(&Delta<V>) + Send>;

/// Keeps a copy of all objects of the view's kind; its [`Reader`]s look at that copy.
///
/// Nothing happens until [`Informer::run`].
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

    /// Only these objects, instead of all.
    #[must_use]
    pub fn only(mut self, selection: ListOptions) -> Self {
        self.selection = selection;
        self
    }

    /// Calls `handler` with every change, in order, after the cache shows it.
    ///
    /// It runs in the informer's own task: it should hand the work to someone else, such as a queue. If it panics, it
    /// misses that change.
    #[must_use]
    pub fn on_event(mut self, handler: impl FnMut(&Delta<V>) + Send + 'static) -> Self {
        self.handlers.push(Box::new(handler));
        self
    }

    /// A look at the copy.
    pub fn reader(&self) -> Reader<V> {
        Reader::new(self.cache.clone())
    }

    /// Fills the copy and keeps it up to date until `shutdown`. A lost watch is resumed where it broke.
    ///
    /// After a panic the state is fetched anew; readers keep the former copy until then.
    pub async fn run(self, shutdown: CancellationToken) {
        let tasks = self.gateway.tasks().clone();
        let informer = Mutex::new(self);
        let start = || async { informer.lock().await.keep_watching().await };
        let watching = tasks.supervise("informer", V::Object::RESOURCE, start);
        shutdown.run_until_cancelled(watching).await;
    }
}
