//! Writes Events one after the other, at a limited rate, so that they do not delay other writes.

use std::time::Duration;

use setpoint_model::Key;
use setpoint_proto::core::{Event, EventSource};
use setpoint_proto::meta::{ObjectMeta, Time};
use setpoint_proto::{ApiError, Reason};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::aggregator::{Aggregator, Counted, Repeated, event_key};
use super::spam_filter::SpamFilter;
use super::{Note, object};
use crate::queue::Bucket;
use crate::{Backoff, Client, cascade, metrics};

const PER_SECOND: f64 = 50.0;
const BURST: f64 = 100.0;
const TRIES: usize = 3;

/// The task of a recorder.
pub(super) struct Writer {
    gateway: Client,
    /// The node of the recorder, if it runs on each.
    host: String,
    instance: String,
    series: Aggregator,
    spam: SpamFilter,
    pace: Bucket,
}

impl Writer {
    pub(super) fn new(gateway: Client, host: &str, instance: &str) -> Self {
        Self {
            gateway,
            host: host.to_owned(),
            instance: instance.to_owned(),
            series: Aggregator::default(),
            spam: SpamFilter::default(),
            pace: Bucket::new(PER_SECOND, BURST),
        }
    }

    /// Writes batches until there are no more. A panic loses the current batch.
    pub(super) async fn run(&mut self, batcher: &mut Batcher) {
        loop {
            let notes = batcher.next().await;
            if notes.is_empty() {
                return;
            }
            for repeated in self.series.merge(notes.into_iter()) {
                if !self.spam.admits(&repeated.note, Instant::now()) {
                    self.series.count(&repeated);
                    continue;
                }
                sleep(self.pace.reserve(Instant::now())).await;
                let written = self.write(&repeated);
                cascade::in_context(repeated.note.trace, written).await;
            }
        }
    }

    async fn write(&mut self, repeated: &Repeated) {
        let Err(error) = self.write_with_retries(repeated).await else {
            return;
        };
        metrics::event_dropped();
        let (object, reason) = (object(&repeated.note.about), &repeated.note.reason);
        match error.is_namespace_terminating() {
            // Nothing is created there any more.
            true => debug!(object, reason, %error, "Event dropped"),
            false => warn!(object, reason, %error, "Event dropped"),
        }
    }

    async fn write_with_retries(&mut self, repeated: &Repeated) -> Result<(), ApiError> {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        let mut retries = 1..TRIES;
        loop {
            let error = match self.try_to_write(repeated).await {
                Ok(counted) => {
                    self.series.set(repeated, Some(counted));
                    return Ok(());
                }
                Err(error) => error,
            };
            if error.reason == Reason::NotFound {
                // The Event has expired: it is created again.
                self.series.set(repeated, None);
            }
            if error.is_namespace_terminating() || retries.next().is_none() {
                return Err(error);
            }
            debug!(%error, "Event not written yet");
            sleep(backoff.next_delay()).await;
        }
    }

    async fn try_to_write(&mut self, repeated: &Repeated) -> Result<Counted, ApiError> {
        let counted = self.series.get(repeated);
        let count = counted.count.saturating_add(repeated.times);
        let event = match counted.event {
            Some(event) => self.set_count(event, count, repeated).await?,
            None => {
                let event = self.event(&repeated.note, count);
                self.gateway.create(&event).await?;
                Key::of(&event.metadata)
            }
        };
        let event = Some(event);
        Ok(Counted { event, count })
    }

    /// Sets the count of an Event. A combined one gets the message of the last occurrence.
    async fn set_count(
        &self,
        event: Key,
        count: i32,
        repeated: &Repeated,
    ) -> Result<Key, ApiError> {
        let last = Time::from(repeated.note.at);
        let mut patch = serde_json::json!({ "count": count, "lastTimestamp": last });
        if repeated.combined {
            patch["message"] = repeated.note.message.as_str().into();
        }
        self.gateway.patch::<Event>(&event, "", patch).await?;
        Ok(event)
    }

    fn event(&self, note: &Note, count: i32) -> Event {
        let Key { namespace, name } = event_key(note);
        Event {
            metadata: ObjectMeta {
                namespace,
                name,
                ..ObjectMeta::default()
            },
            involved_object: note.about.clone(),
            reason: note.reason.clone(),
            message: note.message.clone(),
            source: EventSource {
                component: note.component.to_string(),
                host: self.host.clone(),
            },
            first_timestamp: note.at.into(),
            last_timestamp: note.at.into(),
            count,
            r#type: note.kind.name().to_owned(),
            reporting_component: note.component.to_string(),
            reporting_instance: self.instance.clone(),
            ..Event::default()
        }
    }
}

/// The time that a batch waits for more notes: twice the time in which a Pod becomes Running (seven writes in sequence
/// on two cores), so that Events do not compete with the writes that they are about.
const WAIT: Duration = Duration::from_millis(50);
/// A batch of this size is written at once.
const BATCH: usize = 256;

/// Collects recorded notes into batches.
pub(super) struct Batcher {
    recorded: mpsc::Receiver<Note>,
    closing: CancellationToken,
}

impl Batcher {
    pub(super) const fn new(recorded: mpsc::Receiver<Note>, closing: CancellationToken) -> Self {
        Self { recorded, closing }
    }

    /// Waits for the next batch; empty once the recorder is closed and every note was returned.
    pub(super) async fn next(&mut self) -> Vec<Note> {
        let mut batch = Vec::new();
        let wait = fill(&mut self.recorded, &mut batch);
        if self.closing.run_until_cancelled(wait).await.is_none() {
            batch.extend(std::iter::from_fn(|| self.recorded.try_recv().ok()));
        }
        batch
    }
}

async fn fill(recorded: &mut mpsc::Receiver<Note>, batch: &mut Vec<Note>) {
    let mut more = recorded.recv_many(batch, BATCH).await;
    let end = Instant::now() + WAIT;
    while more > 0 && batch.len() < BATCH {
        let room = BATCH - batch.len();
        let joined = timeout_at(end, recorded.recv_many(batch, room)).await;
        more = joined.unwrap_or(0);
    }
}
