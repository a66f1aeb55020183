//! Consistent reads: the newest revision of the store, and the wait until the cache has reached it. If it does not, the
//! store is read instead, as in Kubernetes.

use std::sync::Arc;

use setpoint_codec::Kind;
use setpoint_model::Revision;
use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, Reason};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{AtLeast, Cache, Shared, metrics};
use crate::{Error, Store};

/// The number of readers in the queue. Further ones wait to enter it.
const QUEUE: usize = 1024;

type Reply = oneshot::Sender<Result<Revision, Error>>;

/// Asks the store for its newest revision, once for all readers that wait at the same time.
#[derive(Clone)]
pub(super) struct NewestRevision {
    readers: mpsc::Sender<Reply>,
}

impl NewestRevision {
    /// Starts the task that asks. A panic in it fails the readers that wait, not those that follow.
    pub fn start(shared: &Arc<Shared>, stop: &CancellationToken) -> Self {
        let (readers, waiting) = mpsc::channel(QUEUE);
        let (store, waiting) = (shared.store.clone(), Arc::new(Mutex::new(waiting)));
        shared.supervise(stop, "cache-consistent-read", move || {
            let (store, waiting) = (store.clone(), waiting.clone());
            async move { serve(&*store, &mut *waiting.lock().await).await }
        });
        Self { readers }
    }

    /// Returns a revision not older than any write that was acknowledged before this call.
    ///
    /// # Errors
    /// The errors of the store; `Unavailable` if the task that asks has panicked.
    pub async fn get(&self) -> Result<Revision, Error> {
        let failed = || Error::Unavailable("its newest revision could not be read".into());
        let (reply, replied) = oneshot::channel();
        self.readers.send(reply).await.map_err(|_| failed())?;
        replied.await.map_err(|_| failed())?
    }
}

/// Serves readers in batches. Those that come while the store is asked wait for the next batch: the answer may be
/// older than their call.
async fn serve(store: &dyn Store, waiting: &mut mpsc::Receiver<Reply>) {
    let mut readers = Vec::new();
    while waiting.recv_many(&mut readers, QUEUE).await > 0 {
        let newest = store.revision().await;
        for reader in readers.drain(..) {
            // Fails for a reader that was dropped.
            let _ = reader.send(newest.clone());
        }
    }
}

impl Cache {
    /// Waits until the first relist is complete: then the custom kinds are known.
    ///
    /// # Errors
    /// `ServiceUnavailable` if the store cannot be read in time.
    pub async fn loaded(&self) -> Result<(), ApiError> {
        self.reach_revision(Revision::default()).await
    }

    /// Waits until the cache is as new as asked.
    ///
    /// # Errors
    /// `Timeout` or `ServiceUnavailable` if that takes too long.
    pub async fn reach(&self, kind: &Kind, at: AtLeast) -> Result<(), ApiError> {
        match at {
            AtLeast::Any => self.loaded().await,
            AtLeast::Revision(revision) => self.wait_for(kind, revision).await,
            AtLeast::Newest => self.wait_for(kind, self.newest.get().await?).await,
        }
    }

    /// Waits until the cache is as new as asked. Returns a revision to read the store at, if the cache is loaded but
    /// does not become as new as the store.
    ///
    /// # Errors
    /// `Timeout` or `ServiceUnavailable` if neither can answer.
    pub(super) async fn reach_or_fall_back(
        &self,
        kind: &Kind,
        at: AtLeast,
    ) -> Result<Option<Revision>, ApiError> {
        if at != AtLeast::Newest {
            return self.reach(kind, at).await.map(|()| None);
        }
        let newest = self.newest.get().await?;
        let is_loaded = || self.reached() != Revision::default();
        if is_loaded() && !self.ready() && self.reached() < newest {
            return Ok(Some(newest));
        }
        match self.wait_for(kind, newest).await {
            Err(_) if is_loaded() => Ok(Some(newest)),
            waited => waited.map(|()| None),
        }
    }

    /// Waits until the cache has reached the revision at which a watch resumes.
    ///
    /// # Errors
    /// `Expired` if the store itself has not reached it: then the revision is of a history that the store has lost.
    pub(super) async fn reach_cursor(
        &self,
        kind: &Kind,
        revision: Revision,
    ) -> Result<(), ApiError> {
        self.ensure_committed(revision).await?;
        self.wait_for(kind, revision).await
    }

    /// Waits until the cache has reached the revision at which a watch of all kinds resumes; `None` is the newest one.
    ///
    /// # Errors
    /// As [`Self::reach_cursor`].
    pub(super) async fn reach_for_all(&self, revision: Option<Revision>) -> Result<(), ApiError> {
        let revision = match revision {
            Some(revision) => revision,
            None => self.newest.get().await?,
        };
        self.ensure_committed(revision).await?;
        self.reach_revision(revision).await
    }

    async fn ensure_committed(&self, revision: Revision) -> Result<(), ApiError> {
        if self.reached() < revision && self.newest.get().await? < revision {
            return Err(Error::Expired.into());
        }
        Ok(())
    }

    /// As [`reach_revision`](Self::reach_revision), and records the time that it took.
    async fn wait_for(&self, kind: &Kind, revision: Revision) -> Result<(), ApiError> {
        let _timer = metrics::read_wait(kind).start_timer();
        self.reach_revision(revision).await
    }

    async fn reach_revision(&self, revision: Revision) -> Result<(), ApiError> {
        let revision = revision.max(Revision::from_raw(1));
        match self.reached() >= revision {
            true => Ok(()),
            // Boxed, since a timer would make the future of every read and write large.
            false => Box::pin(self.await_revision(revision)).await,
        }
    }

    async fn await_revision(&self, revision: Revision) -> Result<(), ApiError> {
        let mut reached = self.shared.reached.subscribe();
        let deadline = Instant::now() + self.shared.settings.read_timeout;
        let waited = timeout_at(deadline, reached.wait_for(|reached| *reached >= revision)).await;
        match waited {
            Ok(Ok(_)) => Ok(()),
            _ => Err(self.too_new(revision)),
        }
    }

    /// The error of a read at a revision that the cache has not reached in time.
    pub(super) fn too_new(&self, revision: Revision) -> ApiError {
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
