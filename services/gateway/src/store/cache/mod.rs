//! Answers every read and watch from memory: one watch on the store feeds one ordered log.
//!
//! What it promises: a watcher gets every change that its filter lets through, each once, in the order of their
//! revisions, or it is told `Expired`. A read that asks for the newest sees every write acknowledged before it.
//! Nobody is waited for: watchers are cursors into the log, and one that falls off its end starts again. So does one
//! whose client has not taken for a while what it was given.

mod cached;
mod changes;
mod check;
mod event;
mod feed;
mod fields;
mod filter;
mod freshness;
mod health;
mod load;
mod log;
mod metrics;
mod past;
mod pending;
mod record;
mod settings;
mod shelf;
mod state;
mod watcher;

use std::sync::Arc;

use parking_lot::RwLock;
use setpoint_codec::Kind;
use setpoint_model::{Key, Revision};
use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, Reason};
use setpoint_task::supervise;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Range, Store, keys};
use freshness::Freshness;
use state::State;

pub use cached::Cached;
pub use changes::{Change, Changes};
pub use check::Difference;
pub use event::{AtLeast, Event, Page, Snapshot, Start, Watch, WatchSpec};
pub use filter::Filter;
pub use health::Health;
pub use past::Before;
pub use settings::Settings;

/// The cache; cheap to clone. It follows its store until the last clone is dropped.
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
    freshness: Freshness,
    _tasks: Arc<DropGuard>,
}

/// What the tasks and the watchers share with the handles.
struct Shared {
    store: Arc<dyn Store>,
    settings: Settings,
    state: RwLock<State>,
    /// The newest revision in `state`; default until all that there was at the start has been read.
    reached: watch::Sender<Revision>,
    health: health::Reports,
    /// The last one found.
    difference: watch::Sender<Option<Difference>>,
    pending: pending::Ledger,
}

impl Cache {
    /// A cache that begins to load. Must be called within a runtime; the store need not be up yet.
    pub fn start(store: Arc<dyn Store>, settings: Settings) -> Self {
        let shared = Arc::new(Shared {
            state: RwLock::new(State::new(&settings)),
            reached: watch::Sender::default(),
            health: health::Reports::default(),
            difference: watch::Sender::default(),
            pending: pending::Ledger::default(),
            store,
            settings,
        });
        metrics::has_room(shared.settings.log_records);
        metrics::expect_checks();
        let stop = CancellationToken::new();
        let feed = shared.clone();
        shared.supervise(&stop, "cache-feed", move || feed::run(feed.clone()));
        let swept = shared.clone();
        shared.supervise(&stop, "cache-sweep", move || pending::sweep(swept.clone()));
        Self {
            freshness: Freshness::start(&shared, &stop),
            shared,
            _tasks: Arc::new(stop.drop_guard()),
        }
    }

    /// One object, not older than asked.
    ///
    /// # Errors
    /// `Timeout` or `ServiceUnavailable` when so new a state cannot be had, `InternalError` when what is stored cannot be
    /// read.
    pub async fn get(
        &self,
        kind: &'static Kind,
        key: &Key,
        at: AtLeast,
    ) -> Result<Option<Arc<Cached>>, ApiError> {
        self.reach(kind, at).await?;
        let state = self.shared.state.read();
        let shelf = state.shelf(kind);
        match shelf.is_unreadable(key) {
            true => Err(unreadable(kind, key)),
            false => Ok(shelf.get(key).cloned()),
        }
    }

    /// Everything that the filter lets through, in key order, not older than asked.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn list(&self, filter: &Filter, at: AtLeast) -> Result<Snapshot, ApiError> {
        self.reach(filter.kind(), at).await?;
        Ok(self.shared.state.read().snapshot(filter))
    }

    /// A page of what the filter let through at one revision of the past: at most `limit` (0: all) after a key.
    /// It is read from the store, in parts that grow where few objects match, as upstream's do.
    ///
    /// # Errors
    /// `Expired` when the store no longer reaches back so far, `Timeout` when it is not there yet.
    pub async fn page(
        &self,
        filter: &Filter,
        at: Revision,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Page, ApiError> {
        let mut page = Page::default();
        let wanted = if limit == 0 { usize::MAX } else { limit };
        let mut range = Range {
            after: after.map(|key| keys::object(filter.kind(), key)),
            limit: wanted.min(load::PAGE),
            at: Some(at),
            ..Range::all(keys::prefix(filter.kind(), filter.namespace()))
        };
        loop {
            let part = self.shared.store.list(range.clone()).await;
            let part = match part {
                Err(super::Error::Expired) if at > self.newest().await? => {
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
                let object = load::object(&entry).filter(|object| filter.matches(object));
                page.items.extend(object);
                range.after = Some(entry.key);
            }
            if page.remaining == 0 || page.items.len() == wanted {
                let last = range.after.and_then(|key| keys::parse(&key));
                page.last = last.map(|(_, key)| key);
                return Ok(page);
            }
            range.limit = (range.limit * 2).min(load::PAGE);
        }
    }

    /// The newest revision of the store: not older than any write acknowledged before the call.
    ///
    /// # Errors
    /// `Timeout` or `ServiceUnavailable` when the store does not answer.
    pub async fn newest(&self) -> Result<Revision, ApiError> {
        Ok(self.freshness.newest().await?)
    }

    /// Changes, and perhaps first the state, as `spec` says. Ends with an error, never silently.
    ///
    /// # Errors
    /// `Expired` when the log does not reach back to where it should start.
    pub async fn watch(&self, spec: WatchSpec) -> Result<Watch, ApiError> {
        let kind = spec.filter.kind();
        match spec.start {
            Start::After(revision) => self.reach_cursor(kind, revision).await?,
            Start::Now => self.reach(kind, AtLeast::Newest).await?,
            Start::Initial(at) => self.reach(kind, at).await?,
        }
        watcher::start(self.shared.clone(), spec)
    }

    /// The newest revision here; the default one until everything has been read.
    pub fn reached(&self) -> Revision {
        *self.shared.reached.borrow()
    }

    /// Has everything been read, and is every change followed?
    pub fn ready(&self) -> bool {
        self.shared.health.is_following()
    }

    /// How the cache stands to its store, and each change of that.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.shared.health.subscribe()
    }

    /// Follows the last difference that a comparison with the store has found; `None` if there was none.
    pub fn differences(&self) -> watch::Receiver<Option<Difference>> {
        self.shared.difference.subscribe()
    }

    /// Waits until everything has been read and every change is followed.
    pub async fn synced(&self) {
        let mut health = self.health();
        // It cannot be closed while this handle lives.
        let _ = health.wait_for(|health| *health == Health::Following).await;
    }

    /// Ends all watches, now and from now on: the process goes away, and their clients should turn elsewhere.
    pub fn close(&self) {
        self.shared.state.write().close();
    }

    async fn reach(&self, kind: &Kind, at: AtLeast) -> Result<(), ApiError> {
        match at {
            AtLeast::Any => self.reach_revision(Revision::from_raw(1)).await,
            AtLeast::Revision(revision) => self.wait_for(kind, revision).await,
            AtLeast::Newest => self.wait_for(kind, self.freshness.newest().await?).await,
        }
    }

    /// A revision that the store has not reached is one of a history that it has lost.
    async fn reach_cursor(&self, kind: &Kind, revision: Revision) -> Result<(), ApiError> {
        if self.reached() < revision && self.freshness.newest().await? < revision {
            return Err(super::Error::Expired.into());
        }
        self.wait_for(kind, revision).await
    }

    /// As [`reach_revision`](Self::reach_revision), measured.
    async fn wait_for(&self, kind: &Kind, revision: Revision) -> Result<(), ApiError> {
        let _timer = metrics::read_wait(kind).start_timer();
        self.reach_revision(revision).await
    }

    async fn reach_revision(&self, revision: Revision) -> Result<(), ApiError> {
        let revision = revision.max(Revision::from_raw(1));
        if self.reached() >= revision {
            return Ok(());
        }
        let mut reached = self.shared.reached.subscribe();
        let deadline = Instant::now() + self.shared.settings.patience;
        let waited = timeout_at(deadline, reached.wait_for(|reached| *reached >= revision)).await;
        match waited {
            Ok(Ok(_)) => Ok(()),
            _ => Err(self.too_new(revision)),
        }
    }

    fn too_new(&self, revision: Revision) -> ApiError {
        let reached = self.reached();
        if reached == Revision::default() {
            let message = "the gateway has not yet read everything from its store";
            return ApiError::new(Reason::ServiceUnavailable, message);
        }
        let message = format!("Too large resource version: {revision}, current: {reached}");
        let cause = StatusCause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".into(),
            ..Default::default()
        };
        ApiError::new(Reason::Timeout, message).with_details(StatusDetails {
            causes: vec![cause],
            retry_after_seconds: 1,
            ..Default::default()
        })
    }
}

impl Shared {
    /// Spawns a task that is restarted after a panic, until `stop`; while it keeps panicking, the cache is `Behind`.
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

fn unreadable(kind: &Kind, key: &Key) -> ApiError {
    let path = keys::object(kind, key);
    let message = format!("unable to transform or decode the object at key {path:?}");
    ApiError::new(Reason::InternalError, message)
}
