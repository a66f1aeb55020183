//! How new the newest is: many readers share one question to the store.

use std::sync::Arc;

use setpoint_model::Revision;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::store::{Error, Store};

/// More readers than this wait to be let in.
const WAITING: usize = 1024;

type Answer = oneshot::Sender<Result<Revision, Error>>;

/// Asks the store for its newest revision, never for one reader alone if others wait.
#[derive(Clone)]
pub(super) struct Freshness {
    questions: mpsc::Sender<Answer>,
}

impl Freshness {
    pub fn start(store: Arc<dyn Store>, stop: CancellationToken) -> Self {
        let (questions, waiting) = mpsc::channel(WAITING);
        tokio::spawn(stop.run_until_cancelled_owned(answer(store, waiting)));
        Self { questions }
    }

    /// A revision not older than any write that was acknowledged before this call.
    pub async fn newest(&self) -> Result<Revision, Error> {
        let stopped = || Error::Unavailable("the cache has been stopped".into());
        let (answer, answered) = oneshot::channel();
        self.questions.send(answer).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }
}

/// Whoever comes while a question is on its way waits for the next: the answer may be older than its call.
async fn answer(store: Arc<dyn Store>, mut waiting: mpsc::Receiver<Answer>) {
    let mut readers = Vec::new();
    while waiting.recv_many(&mut readers, WAITING).await > 0 {
        let newest = store.revision().await;
        for reader in readers.drain(..) {
            // A reader that went away needs no answer.
            let _ = reader.send(newest.clone());
        }
    }
}
