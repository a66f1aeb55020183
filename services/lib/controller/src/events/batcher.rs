//! Where notes wait for others before they are written.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::note::Note;

/// Twice what a Pod's way to Running takes, seven writes in a row on two cores: those who work are done before the first
/// Event about it takes the gateway's time, and nobody who reads Events sees the difference.
const WAIT: Duration = Duration::from_millis(50);
/// So many wait for no more.
const BATCH: usize = 256;

/// Collects notes for a short while.
pub(super) struct Batcher {
    told: mpsc::Receiver<Note>,
    closing: CancellationToken,
}

impl Batcher {
    pub(super) const fn new(told: mpsc::Receiver<Note>, closing: CancellationToken) -> Self {
        Self { told, closing }
    }

    /// What was told, after a wait for more; empty at the end, before which nothing waits.
    pub(super) async fn next(&mut self) -> Vec<Note> {
        let mut batch = Vec::new();
        let wait = fill(&mut self.told, &mut batch);
        if self.closing.run_until_cancelled(wait).await.is_none() {
            batch.extend(std::iter::from_fn(|| self.told.try_recv().ok()));
        }
        batch
    }
}

async fn fill(told: &mut mpsc::Receiver<Note>, batch: &mut Vec<Note>) {
    let mut more = told.recv_many(batch, BATCH).await;
    let end = Instant::now() + WAIT;
    while more > 0 && batch.len() < BATCH {
        let room = BATCH - batch.len();
        let joined = timeout_at(end, told.recv_many(batch, room)).await;
        more = joined.unwrap_or(0);
    }
}
