//! One queue: the waiting requests of the flows that were dealt it, in the order of their arrival.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::work::Work;

/// The time that a request is assumed to take until it has ended (upstream's figure).
pub(crate) const ESTIMATE: Duration = Duration::from_millis(3);

/// A request.
#[derive(Debug)]
pub(crate) struct Request<D> {
    pub(crate) about: D,
    pub(crate) work: Work,
    pub(crate) arrived: Instant,
    /// The virtual time of its arrival.
    pub(crate) arrived_at: f64,
    /// When it began to be executed.
    pub(crate) started: Option<Instant>,
}

impl<D> Request<D> {
    /// Returns its seat-seconds, estimated.
    pub(crate) fn seat_seconds(&self) -> f64 {
        self.work.seat_seconds(ESTIMATE)
    }
}

/// A waiting request, and what wakes it.
#[derive(Debug)]
pub(crate) struct Waiting<D, W> {
    pub(crate) request: Request<D>,
    pub(crate) waker: Option<W>,
}

/// A queue with requests, waiting or executing.
#[derive(Debug)]
pub(crate) struct Queue<D, W> {
    /// By their numbers, and so in the order of their arrival.
    pub(crate) waiting: BTreeMap<u64, Waiting<D, W>>,
    /// The seat-seconds of those.
    pub(crate) work: f64,
    pub(crate) executing: usize,
    /// The seats of those that are executed.
    pub(crate) seats: usize,
    /// The virtual time at which its next request begins.
    pub(crate) next: f64,
}

impl<D, W> Queue<D, W> {
    /// Returns an empty queue that begins at a virtual time.
    pub(crate) fn new(now: f64) -> Self {
        Self {
            waiting: BTreeMap::new(),
            work: 0.0,
            executing: 0,
            seats: 0,
            next: now,
        }
    }

    pub(crate) fn push(&mut self, number: u64, request: Request<D>) {
        self.work += request.seat_seconds();
        let waiting = Waiting {
            request,
            waker: None,
        };
        self.waiting.insert(number, waiting);
        self.catch_up();
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Waiting<D, W>> {
        let removed = self.waiting.remove(&number)?;
        self.work -= removed.request.seat_seconds();
        if self.waiting.is_empty() {
            // Without what rounding has left.
            self.work = 0.0;
        }
        Some(removed)
    }

    /// Returns the oldest waiting request.
    pub(crate) fn head(&self) -> Option<(u64, &Request<D>)> {
        let (number, waiting) = self.waiting.first_key_value()?;
        Some((*number, &waiting.request))
    }

    /// Returns the virtual time at which the oldest waiting request would end.
    pub(crate) fn finish(&self) -> Option<f64> {
        let (_, head) = self.head()?;
        Some(self.next + head.seat_seconds())
    }

    /// Keeps the queue from saving up time that its requests did not need: none begins before it arrived.
    pub(crate) fn catch_up(&mut self) {
        if let Some((_, head)) = self.head() {
            self.next = self.next.max(head.arrived_at);
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.executing == 0
    }
}
