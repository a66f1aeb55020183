//! The state machine of a queue: queued, running and delayed keys. No I/O, no clock.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use setpoint_proto::Cause;
use tokio::time::Instant;

use super::{Bucket, Item, Limiter, Load, MAX_CAUSES, Rest};
use crate::cascade::rank;

/// ```text
///            add                take                 done
///   (none) ───────▶ queued ─────────────▶ running ──────────▶ (none)
///      │              ▲ due                  │  ▲ add: remembered, queued when done
///      └─ add_at ─▶ delayed ◀── retry ───────┘
/// ```
///
/// A key is in at most one of queued and delayed. Queued means: in `waiting`, and in `order` unless running.
pub(super) struct State<K> {
    limiter: Limiter,
    bucket: Bucket,
    waiting: HashMap<K, Waiting>,
    order: VecDeque<K>,
    running: HashMap<K, Instant>,
    delayed: HashMap<K, Delayed>,
    unfinished: HashMap<K, Vec<Cause>>,
    due: BTreeSet<(Instant, K)>,
    failures: HashMap<K, u32>,
    added: u64,
    closed: bool,
}

struct Waiting {
    causes: Vec<Cause>,
    rest: Option<(Rest, Instant)>,
    since: Instant,
}

struct Delayed {
    until: Instant,
    causes: Vec<Cause>,
    rest: (Rest, Instant),
}

/// A key on its way to a worker.
pub(super) struct Taken<K> {
    pub(super) key: K,
    pub(super) causes: Vec<Cause>,
    pub(super) rest: Option<(Rest, Instant)>,
    pub(super) since: Instant,
    pub(super) failures: u32,
}

impl<K: Item> State<K> {
    pub(super) fn new(limiter: Limiter) -> Self {
        Self {
            limiter,
            bucket: Bucket::for_retries(),
            waiting: HashMap::new(),
            order: VecDeque::new(),
            running: HashMap::new(),
            delayed: HashMap::new(),
            unfinished: HashMap::new(),
            due: BTreeSet::new(),
            failures: HashMap::new(),
            added: 0,
            closed: false,
        }
    }

    /// Enqueues a key. A pending delayed add is absorbed; its causes are kept only if the work had failed.
    pub(super) fn add(&mut self, key: K, causes: impl IntoIterator<Item = Cause>, now: Instant) {
        if self.closed {
            return;
        }
        if let Some(waiting) = self.waiting.get_mut(&key) {
            return keep(&mut waiting.causes, causes);
        }
        let rested = self.undelay(&key);
        let failed = rested.filter(|delayed| delayed.rest.0 == Rest::Backoff);
        let rest = failed.as_ref().map(|delayed| delayed.rest);
        let mut kept = failed.map_or_else(Vec::new, |delayed| delayed.causes);
        keep(&mut kept, causes);
        self.enqueue(key, kept, rest, now);
    }

    /// Queues a delayed key that is due.
    fn due(&mut self, key: K, now: Instant) {
        let Some(Delayed { causes, rest, .. }) = self.undelay(&key) else {
            return self.add(key, None, now);
        };
        self.enqueue(key, causes, Some(rest), now);
    }

    fn enqueue(&mut self, key: K, causes: Vec<Cause>, rest: Option<(Rest, Instant)>, now: Instant) {
        self.added += 1;
        if !self.running.contains_key(&key) {
            self.order.push_back(key.clone());
        }
        let waiting = Waiting {
            causes,
            rest,
            since: now,
        };
        self.waiting.insert(key, waiting);
    }

    pub(super) fn add_at(
        &mut self,
        key: K,
        causes: Vec<Cause>,
        rest: Rest,
        at: Instant,
        now: Instant,
    ) {
        if let Some(waiting) = self.waiting.get_mut(&key) {
            return keep(&mut waiting.causes, causes);
        }
        if self.closed {
            return;
        }
        let earlier = self.undelay(&key);
        let mut delayed = Delayed {
            until: at,
            causes,
            rest: (rest, now),
        };
        if let Some(earlier) = earlier {
            delayed.until = at.min(earlier.until);
            delayed.rest.1 = earlier.rest.1;
            keep(&mut delayed.causes, earlier.causes);
        }
        self.due.insert((delayed.until, key.clone()));
        self.delayed.insert(key.clone(), delayed);
        if at <= now {
            self.due(key, now);
        }
    }

    /// Takes the key that has waited longest.
    pub(super) fn take(&mut self, now: Instant) -> Option<Taken<K>> {
        self.wake(now);
        let key = self.order.pop_front()?;
        let waiting = self.waiting.remove(&key);
        let mut waiting = waiting.expect("an ordered key is waiting");
        if let (true, Some(open)) = (waiting.causes.is_empty(), self.unfinished.get(&key)) {
            waiting.causes.clone_from(open);
        }
        self.running.insert(key.clone(), now);
        Some(Taken {
            failures: self.failures.get(&key).copied().unwrap_or_default(),
            key,
            causes: waiting.causes,
            rest: waiting.rest,
            since: waiting.since,
        })
    }

    /// Returns the queued keys in their order if there are more than `count`.
    pub(super) fn more_than(&mut self, count: usize, now: Instant) -> Option<Vec<K>> {
        self.wake(now);
        (self.order.len() > count).then(|| self.order.iter().cloned().collect())
    }

    /// Sorts the queued keys; the sort is stable.
    pub(super) fn sort(&mut self, order: impl FnMut(&K, &K) -> Ordering) {
        self.order.make_contiguous().sort_by(order);
    }

    /// Sets the causes to which later adds of the key without a cause are attributed; an empty slice clears them.
    pub(super) fn attribute_to(&mut self, key: &K, unfinished: &[Cause]) {
        match unfinished.is_empty() {
            true => _ = self.unfinished.remove(key),
            false => _ = self.unfinished.insert(key.clone(), unfinished.to_vec()),
        }
    }

    /// Returns the causes that were added since the key was taken, for a worker that has not observed anything yet.
    pub(super) fn catch_up(&mut self, key: &K, causes: &mut Vec<Cause>) {
        if let Some(waiting) = self.waiting.remove(key) {
            keep(causes, waiting.causes);
        }
    }

    /// Ends the work on a key that succeeded.
    pub(super) fn done(
        &mut self,
        key: K,
        causes: Vec<Cause>,
        again: Option<Duration>,
        now: Instant,
    ) {
        self.failures.remove(&key);
        self.release(&key);
        // A key that waits for another reason is not attributed to the causes of finished work.
        if let (Some(delay), false) = (again, self.waiting.contains_key(&key)) {
            self.add_at(key, causes, Rest::Again, now + delay, now);
        }
    }

    /// Returns the number of failures of the key in a row.
    pub(super) fn failures(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or_default()
    }

    /// Returns the delay of the key after one more failure, without the overall limit on retries.
    pub(super) fn rest(&self, key: &K) -> Duration {
        self.limiter.delay(self.failures(key))
    }

    /// Ends the work on a key that failed; `refused`: by validation.
    pub(super) fn retry(&mut self, key: K, causes: Vec<Cause>, refused: bool, now: Instant) {
        let failures = self.failures.entry(key.clone()).or_default();
        let delay = match refused {
            true => self.limiter.delay_of_refused(*failures),
            false => self.limiter.delay(*failures),
        };
        let delay = delay.max(self.bucket.reserve(now));
        *failures = failures.saturating_add(1);
        self.release(&key);
        // Jitter, so that two writers that conflict do not retry at the same time.
        let delay = delay.mul_f64(rand::random_range(1.0..1.1));
        self.add_at(key, causes, Rest::Backoff, now + delay, now);
    }

    fn release(&mut self, key: &K) {
        self.running.remove(key);
        if self.waiting.contains_key(key) {
            self.order.push_back(key.clone());
        }
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.delayed.clear();
        self.due.clear();
    }

    /// Returns whether the queue is closed and holds no key that can still be taken.
    pub(super) fn is_closed(&self) -> bool {
        self.closed && self.waiting.is_empty()
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn delayed(&self) -> usize {
        self.delayed.len()
    }

    /// Returns the number of adds since the last call.
    pub(super) const fn take_added(&mut self) -> u64 {
        std::mem::replace(&mut self.added, 0)
    }

    /// Returns the load. A delayed key that is due counts as queued.
    pub(super) fn load(&self, now: Instant) -> Load {
        let due = || self.due.iter().take_while(|(at, _)| *at <= now);
        let idle = due().filter(|(_, key)| !self.running.contains_key(key));
        let times = self.running.values().map(|&since| now - since);
        Load {
            depth: self.len() + idle.count(),
            delayed: self.delayed() - due().count(),
            taken: self.running.len(),
            unfinished: times.clone().sum(),
            longest: times.max().unwrap_or_default(),
        }
    }

    /// Queues the delayed keys that are due; their wait counts from the due time.
    fn wake(&mut self, now: Instant) {
        while self.next_due().is_some_and(|at| at <= now) {
            let (at, key) = self.due.pop_first().expect("it was just seen");
            self.due(key, at);
        }
    }

    fn undelay(&mut self, key: &K) -> Option<Delayed> {
        let delayed = self.delayed.remove(key)?;
        self.due.remove(&(delayed.until, key.clone()));
        Some(delayed)
    }
}

/// Keeps the causes of the highest rank when there are too many.
fn keep(kept: &mut Vec<Cause>, causes: impl IntoIterator<Item = Cause>) {
    for cause in causes {
        if kept.contains(&cause) {
            continue;
        }
        if kept.len() < MAX_CAUSES {
            kept.push(cause);
        } else if let Some(least) = kept.iter_mut().min_by_key(|kept| rank(kept))
            && rank(least) < rank(&cause)
        {
            *least = cause;
        }
    }
}
