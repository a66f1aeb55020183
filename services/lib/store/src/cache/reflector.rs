//! Keeps the cache in step with its store.
//!
//! ```text
//!            ┌── too far behind, compacted, or the cache differs from the store ──┐
//!            ▼                                                                    │
//! Loading ─▶ relist at one revision ─▶ watch from there ─▶ Following ─▶ error: Behind ─▶ watch again
//! ```

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use setpoint_codec::{CustomKinds, Kind, kind_of};
use setpoint_model::Revision;
use setpoint_proto::apiextensions::CustomResourceDefinition;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::definitions::Definitions;
use super::kind_store::KindStore;
use super::state::{KindStores, State, empty_kind_stores};
use super::{Health, Shared, check, decode, metrics};
use crate::{Batch, Entry, Error, Range, Store, keys};

/// The largest number of missed revisions that are replayed; beyond it the reflector relists. etcd replays about 8
/// 000 revisions a second, but lists 100 000 objects in a quarter of one.
const MAX_REPLAY: u64 = 2000;

/// The largest number of revisions that are applied under one lock, with one wake-up of the watchers.
const MAX_BATCHES: usize = 256;

/// The time between two probes of the store. Clients leave a gateway that has lost its store.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The time within which the watch must deliver a revision that a probe has read. A busy etcd delivers within a second;
/// consistent reads wait for three.
const MAX_LAG: Duration = Duration::from_secs(5);

/// The first delay after an error. It is doubled with each further error.
const BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// The number of entries per page of a list. Larger pages save etcd no CPU, and need more memory here.
pub(super) const PAGE: usize = 2000;

/// Everything in the store at one revision.
pub(super) struct Relist {
    pub revision: Revision,
    pub kind_stores: KindStores,
    pub custom: Arc<CustomKinds>,
}

/// Follows the store until the task is dropped, whatever errors there are.
///
/// It always begins with a relist: after a panic the state may be half changed.
pub(super) async fn run(shared: Arc<Shared>) {
    shared.health.restarted();
    let mut reflector = Reflector {
        shared,
        followed: None,
        backoff: BACKOFF,
    };
    loop {
        let error = match reflector.follow().await {
            Ok(never) => match never {},
            Err(error) => error,
        };
        tracing::warn!(%error, "the cache cannot follow its store");
        if error == Error::Expired {
            reflector.followed = None;
        }
        let behind = Health::Behind(error.to_string());
        reflector.shared.health.set(behind);
        sleep(reflector.backoff).await;
        reflector.backoff = (reflector.backoff * 2).min(MAX_BACKOFF);
    }
}

struct Reflector {
    shared: Arc<Shared>,
    /// The revision that was applied last; `None` if a relist is due.
    followed: Option<Revision>,
    backoff: Duration,
}

impl Reflector {
    /// Catches up with the store and follows it until there is an error.
    async fn follow(&mut self) -> Result<std::convert::Infallible, Error> {
        let newest = self.shared.store.revision().await?;
        let from = match self
            .followed
            .filter(|followed| can_replay(*followed, newest))
        {
            Some(followed) if check::is_unchanged(&self.shared).await? => followed,
            _ => self.relist(newest).await?,
        };
        self.advance(from, newest);
        let mut definitions = Definitions::new(&self.shared.table);
        let mut batches = self.shared.store.watch(from).ready_chunks(MAX_BATCHES);
        let shared = self.shared.clone();
        let mut failed_probe = pin!(probe(&shared, newest));
        let mut difference = pin!(check::difference(&shared));
        loop {
            let chunk = tokio::select! {
                chunk = batches.next() => chunk,
                error = &mut failed_probe => return Err(error),
                () = &mut difference => return Err(Error::Expired),
            };
            let Some(chunk) = chunk else { break };
            let (batches, error) = until_error(chunk);
            if let Some(last) = batches.last() {
                let reached = last.revision;
                let mut decoded = Vec::with_capacity(batches.len());
                for batch in batches {
                    let mut batch = decode::batch(&mut definitions, batch);
                    batch.added = load_added(&shared, &mut definitions, batch.revision).await?;
                    decoded.push(batch);
                }
                self.shared.change(|state| state.apply(decoded));
                self.advance(reached, newest);
            }
            if let Some(error) = error {
                return Err(error);
            }
        }
        Err(Error::Unavailable("the watch has ended".into()))
    }

    /// Replaces the state by a list. The first list is of a revision a little in the past, so that watches that were
    /// begun at another gateway, or before a restart, can resume here.
    async fn relist(&mut self, newest: Revision) -> Result<Revision, Error> {
        let shared = &self.shared;
        let first = *shared.reached.borrow() == Revision::default();
        let history = if first { shared.settings.history } else { 0 };
        let past = Revision::from_raw(newest.raw().saturating_sub(history).max(1));
        let listed = match list_at(shared, past).await {
            Err(Error::Expired) => list_at(shared, newest).await?,
            listed => listed?,
        };
        let revision = listed.revision;
        tracing::info!(%revision, %newest, "the cache has read everything from its store");
        shared.change(|state| state.replace(listed));
        Ok(revision)
    }

    /// Records the revision that was applied. It is published only from `newest` on: readers must not see a state
    /// older than the store's when the reflector began to follow it.
    fn advance(&mut self, reached: Revision, newest: Revision) {
        self.followed = Some(reached);
        metrics::reached(reached.raw());
        if reached >= newest {
            self.backoff = BACKOFF;
            self.shared.reached.send_replace(reached);
            self.shared.health.set(Health::Following);
        }
    }
}

/// Lists everything at a revision.
async fn list_at(shared: &Shared, at: Revision) -> Result<Relist, Error> {
    let custom = list_definitions(shared, at).await?;
    let mut kind_stores = empty_kind_stores();
    for kind in custom.resources().filter_map(|of| of.stored()) {
        kind_stores.insert(&kind.stored_as, KindStore::new(kind));
    }
    let mut put = |entry: &Entry| {
        if let Some((kind, key, stored)) = decode::stored(&custom, entry)
            && let Some(kind_store) = kind_stores.get_mut(kind.stored_as.as_str())
        {
            kind_store.put(&key, stored);
        }
    };
    for_each_at(&*shared.store, keys::ROOT.to_owned(), at, &mut put).await?;
    Ok(Relist {
        revision: at,
        kind_stores,
        custom,
    })
}

/// Reads the objects of the kinds that a revision has added.
async fn load_added(
    shared: &Shared,
    definitions: &mut Definitions,
    at: Revision,
) -> Result<Vec<(&'static Kind, KindStore)>, Error> {
    let mut loaded = Vec::new();
    for kind in definitions.take_added() {
        let mut kind_store = KindStore::new(kind);
        let custom = definitions.custom();
        let mut put = |entry: &Entry| {
            if let Some((_, key, stored)) = decode::stored(custom, entry) {
                kind_store.put(&key, stored);
            }
        };
        for_each_at(&*shared.store, keys::prefix(kind, ""), at, &mut put).await?;
        loaded.push((kind, kind_store));
    }
    Ok(loaded)
}

/// Returns the custom kinds at a revision. They are needed before their objects can be decoded.
async fn list_definitions(shared: &Shared, at: Revision) -> Result<Arc<CustomKinds>, Error> {
    let mut definitions = Definitions::empty(&shared.table);
    let prefix = keys::prefix(kind_of::<CustomResourceDefinition>(), "");
    let mut declare = |entry: &Entry| {
        if let Some(object) = decode::object(&CustomKinds::default(), entry) {
            definitions.declare(&object);
        }
    };
    for_each_at(&*shared.store, prefix, at, &mut declare).await?;
    Ok(definitions.custom().clone())
}

/// Calls `visit` for each entry below a prefix at a revision.
async fn for_each_at(
    store: &dyn Store,
    prefix: String,
    at: Revision,
    visit: &mut (dyn FnMut(&Entry) + Send),
) -> Result<(), Error> {
    let mut range = Range {
        limit: PAGE,
        at: Some(at),
        ..Range::all(prefix)
    };
    loop {
        let page = store.list(range.clone()).await?;
        page.entries.iter().for_each(&mut *visit);
        range.after = page.entries.last().map(|entry| entry.key.clone());
        if page.remaining == 0 {
            return Ok(());
        }
    }
}

/// Probes the store, and resolves when it does not answer, its revision has gone back, or the watch has not delivered a
/// revision in time: a watch reports none of these.
async fn probe(shared: &Shared, mut newest: Revision) -> Error {
    let mut lag = Lag::default();
    loop {
        sleep(PROBE_INTERVAL).await;
        match timeout(PROBE_TIMEOUT, shared.store.revision()).await {
            Ok(Ok(revision)) if revision < newest => return Error::Expired,
            Ok(Ok(revision)) => newest = revision,
            Ok(Err(error)) => return error,
            Err(_) => return Error::Timeout,
        }
        let applied = shared.state.read().revision;
        if lag.of(applied, newest, Instant::now()) > MAX_LAG {
            return Error::Unavailable(format!("its watch is stuck before revision {newest}"));
        }
    }
}

/// The oldest revision that a probe has read and the watch has not delivered.
#[derive(Default)]
struct Lag(Option<(Revision, Instant)>);

impl Lag {
    /// Returns for how long that revision has not been delivered, after a probe.
    fn of(&mut self, applied: Revision, newest: Revision, now: Instant) -> Duration {
        self.0 = self.0.filter(|(missing, _)| applied < *missing);
        let new = (applied < newest).then_some((newest, now));
        self.0 = self.0.or(new);
        self.0.map_or(Duration::ZERO, |(_, since)| now - since)
    }
}

fn can_replay(followed: Revision, newest: Revision) -> bool {
    newest
        .raw()
        .checked_sub(followed.raw())
        .is_some_and(|behind| behind <= MAX_REPLAY)
}

fn until_error(chunk: Vec<Result<Batch, Error>>) -> (Vec<Batch>, Option<Error>) {
    let mut error = None;
    let batches = chunk
        .into_iter()
        .map_while(|item| item.map_err(|e| error = Some(e)).ok())
        .collect();
    (batches, error)
}

impl Shared {
    /// Changes the state, then wakes the watchers concerned.
    fn change(&self, change: impl FnOnce(&mut State) -> Vec<Arc<Notify>>) {
        let woken = change(&mut self.state.write());
        for wake in woken {
            wake.notify_waiters();
        }
    }
}
