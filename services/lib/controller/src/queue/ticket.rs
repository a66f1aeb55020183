//! The right to work on a key.

use std::time::Duration;

use setpoint_proto::Cause;
use tokio::time::Instant;

use super::state::Taken;
use super::{Item, Queue};

/// The exclusive right to work on a key.
///
/// Dropping it, also by a panic or a cancelled task, returns the key as one whose work has failed.
#[must_use]
pub struct Ticket<K: Item> {
    /// The key to work on.
    pub key: K,
    /// The known causes, the oldest first; at most [`MAX_CAUSES`](super::MAX_CAUSES).
    pub causes: Vec<Cause>,
    /// The times of its waits.
    pub waits: Waits,
    /// The number of failures since the last success, plus 1.
    pub attempt: u32,
    queue: Queue<K>,
    settled: bool,
    refused: bool,
}

impl<K: Item> Ticket<K> {
    pub(super) fn new(queue: Queue<K>, taken: Taken<K>, now: Instant) -> Self {
        Self {
            key: taken.key,
            causes: taken.causes,
            waits: Waits {
                opened: queue.shared.opened,
                rest: taken.rest,
                queued: taken.since,
                taken: now,
            },
            attempt: taken.failures.saturating_add(1),
            queue,
            settled: false,
            refused: false,
        }
    }

    /// Returns the number of this attempt: the failures since the last success, plus 1.
    pub fn attempt(&self) -> u32 {
        self.queue.failures(&self.key).saturating_add(1)
    }

    /// Returns the approximate delay of the key if this attempt fails.
    pub fn rest(&self) -> Duration {
        self.queue.rest(&self.key)
    }

    /// Takes over the adds of the key since it was taken, which this reconcile then covers. To be called before the
    /// worker observes anything.
    pub fn catch_up(&mut self) {
        let mut state = self.queue.shared.state.lock();
        state.catch_up(&self.key, &mut self.causes);
    }

    /// If `unfinished`, later adds of this key without a cause are attributed to this ticket's causes.
    ///
    /// So the start of a container belongs to the write that requested it, and a later crash does not.
    pub fn unfinished(&self, unfinished: bool) {
        let causes = if unfinished { &*self.causes } else { &[] };
        self.queue
            .shared
            .state
            .lock()
            .attribute_to(&self.key, causes);
    }

    /// Ends the work successfully: resets the failures, and adds the key with the same causes after the delay, if any.
    pub fn done(mut self, again: Option<Duration>) {
        self.settled = true;
        let (key, causes) = (self.key.clone(), std::mem::take(&mut self.causes));
        self.queue
            .change(|state, now| state.done(key, causes, again, now));
    }

    /// Ends the work as failed: adds the key again after a delay that grows with each failure.
    pub fn retry(self) {
        drop(self);
    }

    /// Ends the work as refused by validation: adds the key again as [`Self::retry`] does, after a longer delay.
    pub fn refused(mut self) {
        self.refused = true;
    }
}

impl<K: Item> Drop for Ticket<K> {
    fn drop(&mut self) {
        let metrics = &self.queue.shared.metrics;
        metrics.worked(self.waits.taken.elapsed());
        if self.settled {
            return;
        }
        metrics.retried();
        let (key, causes) = (self.key.clone(), std::mem::take(&mut self.causes));
        let refused = self.refused;
        self.queue
            .change(|state, now| state.retry(key, causes, refused, now));
    }
}

/// The reason of a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The last attempt failed.
    Backoff,
    /// The last plan requested to be repeated.
    Again,
}

/// The times on a key's way to its worker.
#[derive(Clone, Debug)]
pub struct Waits {
    /// When the queue was opened: earlier writes waited for a leader.
    pub opened: Instant,
    /// The reason and start of a delay before it was queued; `None` without one.
    pub rest: Option<(Rest, Instant)>,
    /// When it was queued.
    pub queued: Instant,
    /// When a worker took it.
    pub taken: Instant,
}
