//! The queues of the back ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use crate::event::Event;
use crate::metrics;

/// The largest number of events in the queue of a back end, as upstream's.
pub const BUFFER: usize = 10_000;
/// The largest size in bytes of the events in the queue of a back end: some thousands of bodies.
const BYTES: usize = 64 << 20;
/// The interval of log lines about events that are dropped.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// The plugin of events that no queue takes, in metrics.
const PLUGIN: &str = "buffered";

/// The queues of all back ends.
#[derive(Default)]
pub struct Sink {
    queues: Vec<Queue>,
}

/// The queue of a back end, at the end of requests.
pub(crate) struct Queue {
    name: &'static str,
    sender: mpsc::Sender<Item>,
    bytes: Arc<AtomicUsize>,
    dropped: Mutex<Dropped>,
}

/// An item of the queue of a back end.
pub(crate) enum Item {
    Event(Queued),
    /// All events before were written.
    Flush(oneshot::Sender<()>),
}

/// An event in a queue. It counts until it is dropped.
pub(crate) struct Queued {
    pub(crate) event: Arc<Event>,
    size: usize,
    bytes: Arc<AtomicUsize>,
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.bytes.fetch_sub(self.size, Ordering::Relaxed);
    }
}

/// The events that were dropped since the last log line.
#[derive(Default)]
struct Dropped {
    events: usize,
    logged: Option<Instant>,
}

impl Queue {
    /// Returns a queue for so many events, and the end that a back end reads.
    pub(crate) fn new(name: &'static str, buffer: usize) -> (Self, mpsc::Receiver<Item>) {
        let (sender, receiver) = mpsc::channel(buffer.max(1));
        let queue = Self {
            name,
            sender,
            bytes: Arc::default(),
            dropped: Mutex::default(),
        };
        (queue, receiver)
    }

    fn send(&self, event: Arc<Event>, size: usize) {
        let before = self.bytes.fetch_add(size, Ordering::Relaxed);
        let queued = Queued {
            event,
            size,
            bytes: self.bytes.clone(),
        };
        // One that is larger than the limit is taken by an empty queue.
        let fits = before == 0 || before.saturating_add(size) <= BYTES;
        if !fits || self.sender.try_send(Item::Event(queued)).is_err() {
            metrics::errors(PLUGIN, 1);
            self.dropped.lock().add(self.name);
        }
    }

    async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.sender.send(Item::Flush(done)).await.is_ok() {
            // An error says that the back end has ended.
            let _ = written.await;
        }
    }
}

impl Dropped {
    fn add(&mut self, backend: &str) {
        self.events += 1;
        if self.logged.is_some_and(|at| at.elapsed() < LOG_INTERVAL) {
            return;
        }
        tracing::error!(
            backend,
            events = self.events,
            "audit events were dropped: the queue is full"
        );
        (self.events, self.logged) = (0, Some(Instant::now()));
    }
}

impl Sink {
    pub(crate) fn with(mut self, queue: Queue) -> Self {
        self.queues.push(queue);
        self
    }

    /// Hands an event over to all back ends, without waiting for any.
    pub(crate) fn send(&self, event: Event) {
        let (size, event) = (event.size(), Arc::new(event));
        for queue in &self.queues {
            queue.send(event.clone(), size);
        }
    }

    /// Waits until the back ends have written all events so far, for `limit` at most.
    pub async fn flush(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        for queue in &self.queues {
            let left = deadline.saturating_duration_since(Instant::now());
            let _ = timeout(left, queue.flush()).await;
        }
    }
}
