//! The right to work on a key.

use std::time::Duration;

use setpoint_proto::Cause;
use tokio::time::Instant;

use super::state::Taken;
use super::{Item, Queue};

/// The right to work on a key, which nobody else has meanwhile.
///
/// Dropping it, however that happens, hands the key back as if its work had failed.
#[must_use]
pub struct Ticket<K: Item> {
    /// The key to work on.
    pub key: K,
    /// Why, as far as known; the oldest first, at most [`MAX_CAUSES`](super::MAX_CAUSES).
    pub causes: Vec<Cause>,
    /// The times of its wait.
    pub waits: Waits,
    /// 1, and one more for each failure since the last success.
    pub attempt: u32,
    queue: Queue<K>,
    settled: bool,
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
        }
    }

    /// The number of this attempt: 1 unless those before it have failed.
    pub fn attempt(&self) -> u32 {
        self.queue.failures(&self.key).saturating_add(1)
    }

    /// Returns the approximate delay of the key if this attempt fails.
    pub fn rest(&self) -> Duration {
        self.queue.rest(&self.key)
    }

    /// Takes in what was added since, so that the coming look counts for it too.
    ///
    /// Only for a worker that has not yet looked at anything.
    pub fn catch_up(&mut self) {
        let mut state = self.queue.shared.state.lock();
        state.catch_up(&self.key, &mut self.causes);
    }

    /// If `unfinished`, later adds of this key without a cause are attributed to this ticket's causes.
    ///
    /// A container that starts has been asked to; one that crashes later has not.
    pub fn unfinished(&self, unfinished: bool) {
        let causes = if unfinished { &*self.causes } else { &[] };
        self.queue.shared.state.lock().leave(&self.key, causes);
    }

    /// The work is done: forget failures, look again after that time, for the same causes, if there is one.
    pub fn done(mut self, again: Option<Duration>) {
        self.settled = true;
        let (key, causes) = (self.key.clone(), std::mem::take(&mut self.causes));
        self.queue
            .change(|state, now| state.done(key, causes, again, now));
    }

    /// The work has failed: look again, after a rest that grows from failure to failure.
    pub fn retry(self) {
        drop(self);
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
        self.queue
            .change(|state, now| state.retry(key, causes, now));
    }
}

/// The reason of a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Its last attempt failed.
    Backoff,
    /// Its last plan asked to be made again.
    Again,
}

/// The times on a key's way to its worker.
#[derive(Clone, Debug)]
pub struct Waits {
    /// The start of the queue: earlier writes had to wait for a leader.
    pub opened: Instant,
    /// The reason and start of a delay before it was queued; `None` without one.
    pub rest: Option<(Rest, Instant)>,
    /// When it was queued.
    pub queued: Instant,
    /// When a worker took it.
    pub taken: Instant,
}
