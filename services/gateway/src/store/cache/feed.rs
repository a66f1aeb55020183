//! Keeps the cache up with its store.
//!
//! ```text
//!            ┌─── too far behind, compacted, or the cache is not what the store has or had ───┐
//!            ▼                                                                             │
//! Loading ─▶ read everything at one revision ─▶ watch from there ─▶ Following ─▶ broken: Behind ─▶ watch again
//! ```

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use setpoint_model::Revision;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::load::{self, Loaded};
use super::state::State;
use super::{Health, Shared, check, metrics};
use crate::store::{Batch, Error, Store};

/// etcd replays about 8 000 revisions a second, but reads 100 000 objects in a quarter of one.
const REPLAY: u64 = 2000;

/// How many revisions are taken in under one lock, and waiting watchers woken once for.
const AT_ONCE: usize = 256;

/// Between two questions whether the store is still there: clients of a gateway that has lost it go elsewhere.
const PULSE: Duration = Duration::from_secs(1);
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Follows the store, through all that may happen to it, until it is dropped. Reads everything first: after a panic the
/// state may be half changed.
pub(super) async fn run(shared: Arc<Shared>) {
    shared.health.restarted();
    let mut feed = Feed {
        shared,
        followed: None,
        pause: PAUSE,
    };
    loop {
        let error = match feed.follow().await {
            Ok(never) => match never {},
            Err(error) => error,
        };
        tracing::warn!(%error, "the cache has lost its store");
        if error == Error::Expired {
            feed.followed = None;
        }
        let behind = Health::Behind(error.to_string());
        feed.shared.health.set(behind);
        sleep(feed.pause).await;
        feed.pause = (feed.pause * 2).min(LONGEST_PAUSE);
    }
}

struct Feed {
    shared: Arc<Shared>,
    /// What has been taken in; `None`: everything must be read.
    followed: Option<Revision>,
    pause: Duration,
}

impl Feed {
    /// Catches up, and keeps up until something breaks.
    async fn follow(&mut self) -> Result<std::convert::Infallible, Error> {
        let newest = self.shared.store.revision().await?;
        let from = match self
            .followed
            .filter(|followed| can_replay(*followed, newest))
        {
            Some(followed) if check::is_consistent(&self.shared).await? => followed,
            _ => self.load(newest).await?,
        };
        self.arrive(from, newest);
        let mut batches = self.shared.store.watch(from).ready_chunks(AT_ONCE);
        let shared = self.shared.clone();
        let mut silence = pin!(silence(&*shared.store, newest));
        let mut difference = pin!(check::difference(&shared));
        loop {
            let chunk = tokio::select! {
                chunk = batches.next() => chunk,
                error = &mut silence => return Err(error),
                () = &mut difference => return Err(Error::Expired),
            };
            let Some(chunk) = chunk else { break };
            let (batches, error) = until_error(chunk);
            if let Some(last) = batches.last() {
                let reached = last.revision;
                let decoded = batches.into_iter().map(load::decode).collect();
                self.shared.change(|state| state.apply(decoded));
                self.arrive(reached, newest);
            }
            if let Some(error) = error {
                return Err(error);
            }
        }
        Err(Error::Unavailable("the watch has ended".into()))
    }

    /// The first time from a little in the past, so that watches begun before this process can go on.
    async fn load(&mut self, newest: Revision) -> Result<Revision, Error> {
        let shared = &self.shared;
        let first = *shared.reached.borrow() == Revision::default();
        let past = if first { shared.settings.history } else { 0 };
        let past = Revision::from_raw(newest.raw().saturating_sub(past).max(1));
        let loaded = match load::everything(&*shared.store, past).await {
            Err(Error::Expired) => load::everything(&*shared.store, newest).await?,
            loaded => loaded?,
        };
        let Loaded { revision, .. } = loaded;
        tracing::info!(%revision, %newest, "everything was read from the store");
        shared.change(|state| state.replace(loaded));
        Ok(revision)
    }

    /// Nobody is told of a state older than the one that the store had when asked.
    fn arrive(&mut self, reached: Revision, newest: Revision) {
        self.followed = Some(reached);
        metrics::reached(reached.raw());
        if reached >= newest {
            self.pause = PAUSE;
            self.shared.reached.send_replace(reached);
            self.shared.health.set(Health::Following);
        }
    }
}

/// Resolves when the store does not answer, or tells of an older state than before: a watch alone would not say so.
async fn silence(store: &dyn Store, mut newest: Revision) -> Error {
    loop {
        sleep(PULSE).await;
        match timeout(ANSWER_WITHIN, store.revision()).await {
            Ok(Ok(revision)) if revision < newest => return Error::Expired,
            Ok(Ok(revision)) => newest = revision,
            Ok(Err(error)) => return error,
            Err(_) => return Error::Timeout,
        }
    }
}

fn can_replay(followed: Revision, newest: Revision) -> bool {
    newest
        .raw()
        .checked_sub(followed.raw())
        .is_some_and(|behind| behind <= REPLAY)
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
    /// Changes the state, then wakes whom it concerns.
    fn change(&self, change: impl FnOnce(&mut State) -> Vec<Arc<Notify>>) {
        let woken = change(&mut self.state.write());
        for wake in woken {
            wake.notify_waiters();
        }
    }
}
