//! A cache of all objects of a kind, kept up to date by one watch.
//!
//! Guarantees:
//! * Readers and handlers see states that existed, in order for each object; some states may be skipped.
//! * A handler that is called for a change can read it: the cache is updated first, then its indexes, then the handlers
//!   are called, and then [`Reader::reached`] advances.
//! * An interrupted initial list is not [synced](Reader::synced), and a relist replaces the cache in one step once it
//!   is complete.
//! * A deletion that was missed while the watch was interrupted is reported after the relist.
//! * An object of the same name with another uid is a deletion, then an addition.

mod phase;
mod progress;
mod reader;
mod shared;
mod store;
mod watching;

use std::sync::Arc;

use setpoint_model::Revision;
use setpoint_proto::{Cause, Resource as _};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

pub(crate) use progress::{Moment, Progress};
pub use reader::Reader;
pub use shared::SharedInformers;

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
type Handlers<V> = Arc<parking_lot::Mutex<Vec<Handler<V>>>>;

/// Keeps a cache of the objects of the view's kind, which its [`Reader`]s read.
///
/// It is idle until [`Informer::run`].
///
/// ```no_run
/// use setpoint_controller::{Client, Whole, client};
/// use setpoint_model::Key;
/// use setpoint_proto::core::ConfigMap;
/// use tokio_util::sync::CancellationToken;
///
/// # async fn example() -> Result<(), client::Error> {
/// let client = Client::connect(&client::Settings::default(), "example")?;
/// let informer = client.informer::<Whole<ConfigMap>>().on_event(|delta| {
///     if let (None, Some(new)) = (&delta.old, &delta.new) {
///         println!("{} was created", new.meta.key);
///     }
/// });
/// let reader = informer.reader();
/// let stop = CancellationToken::new();
/// tokio::spawn(informer.run(stop.clone()));
/// reader.synced().await;
/// let greeting = reader.get(&Key::new("default", "greeting"));
/// # Ok(())
/// # }
/// ```
pub struct Informer<V> {
    gateway: Client,
    selection: ListOptions,
    phase: Phase<V>,
    cache: Arc<Cache<V>>,
    handlers: Handlers<V>,
    /// Held by the one that runs of several that share a copy.
    running: Arc<Mutex<()>>,
}

impl<V: View> Informer<V> {
    pub(crate) fn new(gateway: Client) -> Self {
        Self {
            gateway,
            selection: ListOptions::default(),
            phase: Phase::Empty,
            cache: Arc::default(),
            handlers: Handlers::default(),
            running: Arc::default(),
        }
    }

    /// Returns an informer of the selected objects.
    #[must_use]
    pub fn only(self, selection: ListOptions) -> Self {
        Self {
            selection,
            ..Self::new(self.gateway)
        }
    }

    /// Returns another informer of the same cache and handlers. Of those that run, one watches; if it ends, another
    /// continues.
    #[must_use]
    pub fn share(&self) -> Self {
        Self {
            gateway: self.gateway.clone(),
            selection: self.selection.clone(),
            phase: Phase::Empty,
            cache: self.cache.clone(),
            handlers: self.handlers.clone(),
            running: self.running.clone(),
        }
    }

    /// Calls `handler` with every change, in order, after the cache shows it.
    ///
    /// It runs in the informer's task and should only enqueue work. If it panics, it misses that change.
    #[must_use]
    pub fn on_event(self, handler: impl FnMut(&Delta<V>) + Send + 'static) -> Self {
        self.handlers.lock().push(Box::new(handler));
        self
    }

    /// Returns a reader of the cache.
    pub fn reader(&self) -> Reader<V> {
        Reader::new(self.cache.clone())
    }

    /// Fills the cache and keeps it up to date until `shutdown`. A lost watch is resumed at the revision that it
    /// reached.
    ///
    /// After a panic it relists; readers see the former cache until then.
    pub async fn run(self, shutdown: CancellationToken) {
        let tasks = self.gateway.tasks().clone();
        let running = self.running.clone();
        let informer = Mutex::new(self);
        let start = || async { informer.lock().await.keep_watching().await };
        let watching = async {
            let _alone = running.lock().await;
            tasks
                .supervise("informer", V::Object::RESOURCE, start)
                .await;
        };
        shutdown.run_until_cancelled(watching).await;
    }
}
