//! How new the newest is: many readers share one question to the store.

use std::sync::Arc;

use setpoint_model::Revision;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::Shared;
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
    /// Starts the task that asks. After a panic, whoever waited gets an error, and the questions to come an answer.
    pub fn start(shared: &Arc<Shared>, stop: &CancellationToken) -> Self {
        let (questions, waiting) = mpsc::channel(WAITING);
        let (store, waiting) = (shared.store.clone(), Arc::new(Mutex::new(waiting)));
        shared.supervise(stop, "cache-freshness", move || {
            let (store, waiting) = (store.clone(), waiting.clone());
            async move { answer(&*store, &mut *waiting.lock().await).await }
        });
        Self { questions }
    }

    /// A revision not older than any write that was acknowledged before this call.
    pub async fn newest(&self) -> Result<Revision, Error> {
        let unanswered = || Error::Unavailable("its newest revision was not told".into());
        let (answer, answered) = oneshot::channel();
        self.questions
            .send(answer)
            .await
            .map_err(|_| unanswered())?;
        answered.await.map_err(|_| unanswered())?
    }
}

/// Whoever comes while a question is on its way waits for the next: the answer may be older than its call.
async fn answer(store: &dyn Store, waiting: &mut mpsc::Receiver<Answer>) {
    let mut readers = Vec::new();
    while waiting.recv_many(&mut readers, WAITING).await > 0 {
        let newest = store.revision().await;
        for reader in readers.drain(..) {
            // A reader that went away needs no answer.
            let _ = reader.send(newest.clone());
        }
    }
}
