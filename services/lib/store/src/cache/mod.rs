//! The watch cache: answers reads and watches from memory. One watch on the store appends to one ordered log.
//!
//! Guarantees:
//!
//! * A watcher gets every change that its filter selects, each once, in order of revision, or else the error `Expired`.
//! * A consistent read ([`AtLeast::Newest`]) sees every write that was acknowledged before it.
//! * No watcher delays another: watchers are cursors into the log. One that falls behind its start gets `Expired`, and
//!   so does one whose client does not take its events.

mod cached;
mod change_feed;
mod check;
mod consistent_read;
mod decode;
mod definitions;
mod event;
mod fields;
mod filter;
mod health;
mod history;
mod kind_store;
mod log;
mod metrics;
mod record;
mod reflector;
mod state;
mod unreadable;
mod watch_all;
mod watch_buffer;
mod watcher;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use setpoint_codec::{Kind, KindTable};
use setpoint_model::{Key, Revision};
use setpoint_proto::ApiError;
use setpoint_task::supervise;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{Error, Range, Store, keys};
use consistent_read::NewestRevision;
use decode::Stored;
use state::State;

pub use cached::Cached;
pub use change_feed::{ChangeFeed, Update};
pub use check::Difference;
pub use event::{AtLeast, Event, Page, Snapshot, Start, Watch, WatchSpec};
pub use filter::Filter;
pub use health::Health;
pub use history::Before;
pub use unreadable::Unreadable;
pub use watch_all::{AllWatch, Written};

/// The sizes and times of a cache.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The number of revisions before its start that the cache reads, so that watches resume across a restart.
    pub history: u64,
    /// The largest number of changes in the log. A watcher further behind gets `Expired`.
    pub log_records: usize,
    /// The largest size of the objects in the log, in bytes.
    pub log_bytes: usize,
    /// The longest time that a watch is silent before it sends a bookmark.
    pub bookmark_interval: Duration,
    /// The time for which a client may leave events untaken before its watch ends with `Expired`.
    pub stall: Duration,
    /// The time for which a read waits for the revision that it asks for.
    pub read_timeout: Duration,
    /// The longest time between two comparisons of the cache with its store; zero for none. It is also compared
    /// whenever the store is followed again after an error.
    pub check_interval: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            history: 1000,
            log_records: 10_000,
            log_bytes: 32 << 20,
            bookmark_interval: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            read_timeout: Duration::from_secs(3),
            check_interval: Duration::from_secs(5 * 60),
        }
    }
}

/// A watch cache. Clones are cheap and share one state, which follows the store until the last clone is dropped.
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
    newest: NewestRevision,
    _tasks: Arc<DropGuard>,
}

/// The state that tasks, watchers and handles share.
struct Shared {
    store: Arc<dyn Store>,
    settings: Settings,
    state: RwLock<State>,
    table: Arc<KindTable>,
    /// The revision of `state`; the default until the first relist is complete.
    reached: watch::Sender<Revision>,
    health: health::Reports,
    /// The difference that was found last.
    difference: watch::Sender<Option<Difference>>,
    buffers: watch_buffer::Buffers,
}

impl Cache {
    /// Starts a cache. The store need not be up yet.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn start(store: Arc<dyn Store>, settings: Settings) -> Self {
        let table = Arc::new(KindTable::default());
        let shared = Arc::new(Shared {
            state: RwLock::new(State::new(&settings, table.clone())),
            table,
            reached: watch::Sender::default(),
            health: health::Reports::default(),
            difference: watch::Sender::default(),
            buffers: watch_buffer::Buffers::default(),
            store,
            settings,
        });
        metrics::set_capacity(shared.settings.log_records);
        metrics::init_checks();
        let stop = CancellationToken::new();
        let reflector = shared.clone();
        shared.supervise(&stop, "cache-reflector", move || {
            reflector::run(reflector.clone())
        });
        let swept = shared.clone();
        shared.supervise(&stop, "cache-sweep", move || {
            watch_buffer::sweep(swept.clone())
        });
        Self {
            newest: NewestRevision::start(&shared, &stop),
            shared,
            _tasks: Arc::new(stop.drop_guard()),
        }
    }

    /// Returns an object, not older than asked.
    ///
    /// # Errors
    /// `Timeout` or `ServiceUnavailable` if the cache does not become that new in time, `InternalError` if the stored
    /// value cannot be decoded.
    pub async fn get(
        &self,
        kind: &'static Kind,
        key: &Key,
        at: AtLeast,
    ) -> Result<Option<Arc<Cached>>, ApiError> {
        if let Some(newest) = self.reach_or_fall_back(kind, at).await? {
            return self.get_stored(kind, key, newest).await;
        }
        let state = self.shared.state.read();
        let kind_store = state.kind_store(kind)?;
        match kind_store.unreadable(key) {
            Some(unreadable) => Err(unreadable.error(kind)),
            None => Ok(kind_store.get(key).cloned()),
        }
    }

    /// Returns the objects that the filter selects, in key order, not older than asked; those that cannot be decoded
    /// are named besides them.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn list(&self, filter: &Filter, at: AtLeast) -> Result<Snapshot, ApiError> {
        if let Some(newest) = self.reach_or_fall_back(filter.kind(), at).await? {
            let page = self.page(filter, newest, None, 0).await?;
            return Ok(Snapshot {
                revision: newest,
                items: page.items,
                unreadable: Vec::new(),
            });
        }
        self.shared.state.read().snapshot(filter)
    }

    /// Reads an object from the store.
    async fn get_stored(
        &self,
        kind: &'static Kind,
        key: &Key,
        at: Revision,
    ) -> Result<Option<Arc<Cached>>, ApiError> {
        let path = keys::object(kind, key);
        let Some(entry) = self.shared.store.get_at(&path, at).await? else {
            return Ok(None);
        };
        match decode::stored(&self.shared.table.custom(), &entry) {
            Some((_, _, Stored::Object(object))) => Ok(Some(object)),
            Some((kind, _, Stored::Unreadable(found))) => Err(found.error(kind)),
            _ => Ok(None),
        }
    }

    /// Returns an object as of the cache's own revision, without waiting for anything; `None` if it does not exist,
    /// cannot be decoded, or was not read yet.
    pub fn peek(&self, kind: &'static Kind, key: &Key) -> Option<Arc<Cached>> {
        let state = self.shared.state.read();
        state.kind_store(kind).ok()?.get(key).cloned()
    }

    /// Returns the objects that the filter selects as of the cache's own revision, without waiting for anything. Those
    /// that cannot be decoded or were not read yet are left out.
    pub fn peek_all(&self, filter: &Filter) -> Vec<Arc<Cached>> {
        let state = self.shared.state.read();
        let kind_store = state.kind_store(filter.kind());
        kind_store.map_or_else(|_| Vec::new(), |kind_store| kind_store.select(filter))
    }

    /// Returns the number of the objects of a kind, and their size in bytes, as of the cache's own revision; `None` if
    /// it is not stored.
    pub fn size(&self, kind: &'static Kind) -> Option<(usize, usize)> {
        let state = self.shared.state.read();
        Some(state.kind_store(kind).ok()?.size())
    }

    /// Returns all objects of some kinds as of one moment, in the order of the kinds and, in a kind, of the keys.
    ///
    /// # Errors
    /// `Timeout` if the cache is not loaded in time.
    pub async fn all_of(&self, kinds: &[&'static Kind]) -> Result<Vec<Arc<Cached>>, ApiError> {
        self.loaded().await?;
        let state = self.shared.state.read();
        let mut all = Vec::new();
        for kind in kinds {
            all.extend(state.kind_store(kind)?.all().cloned());
        }
        Ok(all)
    }

    /// Returns a page of the objects that the filter selects as of revision `at`: at most `limit` (0 for all) after a
    /// key.
    ///
    /// The page is read from the store, in parts whose size doubles while few objects match, as in Kubernetes.
    ///
    /// # Errors
    /// `Expired` if the history no longer includes the revision, `Timeout` if the store has not reached it,
    /// `StorageReadError` if a value cannot be decoded.
    pub async fn page(
        &self,
        filter: &Filter,
        at: Revision,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Page, ApiError> {
        let custom = self.shared.table.custom();
        let mut page = Page::default();
        let wanted = if limit == 0 { usize::MAX } else { limit };
        let mut range = Range {
            after: after.map(|key| keys::object(filter.kind(), key)),
            limit: wanted.min(reflector::PAGE),
            at: Some(at),
            ..Range::all(keys::prefix(filter.kind(), filter.namespace()))
        };
        loop {
            let part = self.shared.store.list(range.clone()).await;
            let part = match part {
                Err(Error::Expired) if at > self.newest().await? => {
                    return Err(self.too_new(at));
                }
                part => part?,
            };
            page.remaining = part.remaining + part.entries.len();
            for entry in part.entries {
                if page.items.len() == wanted {
                    break;
                }
                page.remaining -= 1;
                match decode::stored(&custom, &entry) {
                    Some((_, _, Stored::Object(object))) if filter.matches(&object) => {
                        page.items.push(object);
                    }
                    Some((kind, _, Stored::Unreadable(found))) => {
                        return Err(unreadable::error(kind, std::iter::once(&found)));
                    }
                    _ => {}
                }
                range.after = Some(entry.key);
            }
            if page.remaining == 0 || page.items.len() == wanted {
                let last = range.after.and_then(|key| keys::parse(&custom, &key));
                page.last = last.map(|(_, key)| key);
                return Ok(page);
            }
            range.limit = (range.limit * 2).min(reflector::PAGE);
        }
    }

    /// Returns the newest revision of the store, not older than any write acknowledged before the call.
    ///
    /// # Errors
    /// `Timeout` or `ServiceUnavailable` if the store does not answer.
    pub async fn newest(&self) -> Result<Revision, ApiError> {
        Ok(self.newest.get().await?)
    }

    /// Starts a watch. Its stream ends with an error, never without one. Values that cannot be decoded are not part of
    /// its initial state.
    ///
    /// # Errors
    /// `Expired` if the log no longer includes the start of the watch.
    pub async fn watch(&self, spec: WatchSpec) -> Result<Watch, ApiError> {
        self.reach_start(&spec).await?;
        watcher::start(self.shared.clone(), spec, Ok)
    }

    /// Starts a watch with a complete initial state, if it asks for one.
    ///
    /// # Errors
    /// As [`Self::watch`]; `StorageReadError` if a value of the initial state cannot be decoded.
    pub async fn watch_complete(&self, spec: WatchSpec) -> Result<Watch, ApiError> {
        self.reach_start(&spec).await?;
        let kind = spec.filter.kind();
        watcher::start(self.shared.clone(), spec, |initial| initial.complete(kind))
    }

    async fn reach_start(&self, spec: &WatchSpec) -> Result<(), ApiError> {
        let kind = spec.filter.kind();
        match spec.start {
            Start::After(revision) => self.reach_cursor(kind, revision).await,
            Start::Now => self.reach(kind, AtLeast::Newest).await,
            Start::Initial(at) => self.reach(kind, at).await,
        }
    }

    /// Returns the kinds that are served: those of the `.proto` files, and the custom ones at the revision of the
    /// cache.
    pub fn kinds(&self) -> &Arc<KindTable> {
        &self.shared.table
    }

    /// Returns the revision of the cache; the default until the first relist is complete.
    pub fn reached(&self) -> Revision {
        *self.shared.reached.borrow()
    }

    /// Returns whether the cache follows its store.
    pub fn ready(&self) -> bool {
        self.shared.health.is_following()
    }

    /// Returns a receiver of the health of the cache.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.shared.health.subscribe()
    }

    /// Returns a receiver of the last difference between the cache and its store; `None` if there was none.
    pub fn differences(&self) -> watch::Receiver<Option<Difference>> {
        self.shared.difference.subscribe()
    }

    /// Waits until the cache follows its store.
    pub async fn synced(&self) {
        let mut health = self.health();
        // Cannot fail: this handle keeps the sender.
        let _ = health.wait_for(|health| *health == Health::Following).await;
    }

    /// Ends all watches with `ServiceUnavailable`, also those that are started later. Called when the process stops,
    /// so that clients turn to another gateway.
    pub fn close(&self) {
        self.shared.state.write().close();
    }
}

impl Shared {
    /// Spawns a task that is restarted after a panic, until `stop`. While it keeps panicking, the health is `Behind`.
    fn supervise<T, F>(
        self: &Arc<Self>,
        stop: &CancellationToken,
        task: &'static str,
        start: impl FnMut() -> F + Send + 'static,
    ) where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let shared = self.clone();
        let report = move |report| shared.health.report(task, report);
        let supervised = supervise(task, report, start);
        tokio::spawn(stop.clone().run_until_cancelled_owned(supervised));
    }
}
