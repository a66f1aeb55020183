//! The webhook back end: events in lists, sent to a server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout_at};

use crate::event::Event;
use crate::metrics;
use crate::sink::{Item, Queue, Queued, Sink};

const PLUGIN: &str = "webhook";
/// The number of tries to send a list, as upstream.
const TRIES: u32 = 5;
/// The factor by which the wait after a failure grows, and the part of it that is random, as upstream.
const FACTOR: f64 = 1.5;
const JITTER: f64 = 0.2;
/// The largest size of a list in bytes, which one event may exceed.
const BYTES: usize = 10 << 20;

/// Sends a list of events to a server.
pub trait Post: Send + Sync + 'static {
    /// Posts JSON.
    ///
    /// # Errors
    /// If the server has not accepted it in its time.
    fn post(&self, json: Bytes) -> impl Future<Output = Result<(), String>> + Send;
}

/// The sizes of lists, and the waits between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batches {
    /// The largest number of events in a list.
    pub size: usize,
    /// The longest wait until a list is sent that is not full.
    pub wait: Duration,
    /// The wait after the first failure.
    pub initial_backoff: Duration,
}

/// The webhook back end.
pub struct Webhook<P> {
    server: P,
    batches: Batches,
}

/// Events for one list, and those who wait until it was sent.
#[derive(Default)]
struct Batch {
    events: Vec<Queued>,
    bytes: usize,
    flushed: Vec<oneshot::Sender<()>>,
}

impl<P: Post> Webhook<P> {
    /// Sends events in a task, and adds its queue for so many events to a sink.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn start(server: P, batches: Batches, buffer: usize, sink: Sink) -> Sink {
        let (queue, receiver) = Queue::new(PLUGIN, buffer);
        let webhook = Self { server, batches };
        tokio::spawn(webhook.run(receiver));
        sink.with(queue)
    }

    async fn run(self, mut receiver: Receiver<Item>) {
        while let Some(first) = receiver.recv().await {
            let batch = self.collect(first, &mut receiver).await;
            if !batch.events.is_empty() {
                self.send(&batch).await;
            }
            for done in batch.flushed {
                // Nobody may wait any more.
                let _ = done.send(());
            }
        }
    }

    /// Collects a list, until it is full, its time is over, or somebody waits for it.
    async fn collect(&self, first: Item, receiver: &mut Receiver<Item>) -> Batch {
        let mut batch = Batch::default();
        batch.add(first);
        let deadline = Instant::now() + self.batches.wait;
        while !batch.is_full(self.batches.size) {
            match timeout_at(deadline, receiver.recv()).await {
                Ok(Some(item)) => batch.add(item),
                Ok(None) | Err(_) => break,
            }
        }
        batch
    }

    /// Sends a list, a few times if need be. Then its events are lost.
    async fn send(&self, batch: &Batch) {
        let events = batch.events.iter().map(|queued| queued.event.clone());
        let events: Vec<_> = events.collect();
        // Bodies may be large: other tasks do not wait for them.
        let Ok(list) = spawn_blocking(move || list_of(&events)).await else {
            return metrics::errors(PLUGIN, batch.events.len());
        };
        let mut backoff = self.batches.initial_backoff;
        for attempt in 1..=TRIES {
            let Err(error) = self.server.post(list.clone()).await else {
                return;
            };
            let events = batch.events.len();
            if attempt == TRIES {
                metrics::errors(PLUGIN, events);
                tracing::error!(error, events, "audit events were not sent");
                return;
            }
            tracing::warn!(error, events, "audit events were not sent; trying again");
            sleep(backoff.mul_f64(1.0 + rand::random_range(0.0..JITTER))).await;
            backoff = backoff.mul_f64(FACTOR);
        }
    }
}

impl Batch {
    fn add(&mut self, item: Item) {
        match item {
            Item::Event(queued) => {
                self.bytes += queued.event.size();
                self.events.push(queued);
            }
            Item::Flush(done) => self.flushed.push(done),
        }
    }

    fn is_full(&self, size: usize) -> bool {
        self.events.len() >= size || self.bytes >= BYTES || !self.flushed.is_empty()
    }
}

/// Returns events as an `EventList`.
fn list_of(events: &[Arc<Event>]) -> Bytes {
    let items: Vec<_> = events.iter().map(|event| event.json()).collect();
    let items = items.join(",");
    let head = r#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":["#;
    format!("{head}{items}]}}\n").into()
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use serde_json::Value;

    use super::*;
    use crate::policy::{Decision, Level};
    use crate::{Head, Record};

    const LIMIT: Duration = Duration::from_secs(3600);

    /// A server that fails so often before it accepts lists; it hangs if the number is not known.
    #[derive(Clone, Default)]
    struct Server {
        failures: Arc<Mutex<Option<usize>>>,
        lists: Arc<Mutex<Vec<usize>>>,
    }

    impl Server {
        fn failing(times: usize) -> Self {
            let server = Self::default();
            *server.failures.lock() = Some(times);
            server
        }
    }

    impl Post for Server {
        async fn post(&self, json: Bytes) -> Result<(), String> {
            let left = *self.failures.lock();
            match left {
                None => std::future::pending().await,
                Some(0) => {
                    let list: Value = serde_json::from_slice(&json).unwrap();
                    assert_eq!(list["kind"], "EventList");
                    self.lists
                        .lock()
                        .push(list["items"].as_array().unwrap().len());
                    Ok(())
                }
                Some(left) => {
                    *self.failures.lock() = Some(left - 1);
                    Err("it is down".into())
                }
            }
        }
    }

    fn start(server: &Server, buffer: usize) -> Arc<Sink> {
        let batches = Batches {
            size: 4,
            wait: Duration::from_secs(30),
            initial_backoff: Duration::from_secs(10),
        };
        Arc::new(Webhook::start(
            server.clone(),
            batches,
            buffer,
            Sink::default(),
        ))
    }

    /// Records a request: two events.
    fn record(sink: &Arc<Sink>) {
        let decision = Decision {
            level: Level::Metadata,
            ..Decision::default()
        };
        Record::begin(sink, decision, Head::default(), None, false).respond(200);
    }

    #[tokio::test(start_paused = true)]
    async fn events_are_sent_in_lists_of_limited_size() {
        let server = Server::failing(0);
        let sink = start(&server, 100);
        for _ in 0..5 {
            record(&sink);
        }
        sink.flush(LIMIT).await;
        assert_eq!(*server.lists.lock(), [4, 4, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_is_not_full_is_sent_after_a_while() {
        let server = Server::failing(0);
        let sink = start(&server, 100);
        record(&sink);
        sleep(Duration::from_secs(29)).await;
        assert!(server.lists.lock().is_empty());
        sleep(Duration::from_secs(2)).await;
        assert_eq!(*server.lists.lock(), [2]);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_tried_again_and_then_counted() {
        let server = Server::failing(4);
        let sink = start(&server, 100);
        record(&sink);
        sink.flush(LIMIT).await;
        assert_eq!(*server.lists.lock(), [2]);
        *server.failures.lock() = Some(5);
        let before = metrics::failed(PLUGIN);
        record(&sink);
        sink.flush(LIMIT).await;
        assert_eq!(*server.lists.lock(), [2]);
        assert!(metrics::failed(PLUGIN) >= before + 2);
        record(&sink);
        sink.flush(LIMIT).await;
        assert_eq!(*server.lists.lock(), [2, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_hangs_stops_nobody_and_what_does_not_fit_is_counted() {
        let server = Server::default();
        let sink = start(&server, 8);
        let before = metrics::failed("buffered");
        for _ in 0..50 {
            record(&sink);
            tokio::task::yield_now().await;
        }
        // Four are under way, and eight wait.
        assert!(metrics::failed("buffered") >= before + 100 - 12);
    }
}
