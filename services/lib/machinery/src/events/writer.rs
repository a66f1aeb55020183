//! Writes Events, one after the other and not too fast: they must not take the gateway's time from the work.

use std::time::Duration;

use setpoint_model::Key;
use setpoint_proto::core::{Event, EventSource};
use setpoint_proto::meta::{ObjectMeta, Time};
use setpoint_proto::{ApiError, Reason, cause};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tracing::{Instrument as _, debug, info_span, warn};

use super::note::Note;
use super::series::{Counted, Known, Repeated, event_key};
use crate::queue::Bucket;
use crate::{Backoff, Gateway, metrics};

/// What waits is merged up to this many at once.
const BATCH: usize = 256;
const PER_SECOND: f64 = 50.0;
const BURST: f64 = 100.0;
const TRIES: usize = 3;

/// The task behind a recorder.
pub(super) struct Writer {
    gateway: Gateway,
    component: String,
    instance: String,
    known: Known,
    pace: Bucket,
}

impl Writer {
    pub(super) fn new(gateway: Gateway, component: &str, instance: &str) -> Self {
        Self {
            gateway,
            component: component.to_owned(),
            instance: instance.to_owned(),
            known: Known::default(),
            pace: Bucket::new(PER_SECOND, BURST),
        }
    }

    pub(super) async fn run(mut self, mut told: mpsc::Receiver<Note>) {
        let mut batch = Vec::with_capacity(BATCH);
        while told.recv_many(&mut batch, BATCH).await > 0 {
            for repeated in self.known.merge(batch.drain(..)) {
                sleep(self.pace.reserve(Instant::now())).await;
                let span = info_span!("event", reason = repeated.note.reason);
                if let Some(traceparent) = &repeated.note.traceparent {
                    cause::adopt(&span, traceparent);
                }
                self.write(&repeated).instrument(span).await;
            }
        }
    }

    async fn write(&mut self, repeated: &Repeated) {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        for _ in 0..TRIES {
            match self.try_to_write(repeated).await {
                Ok(counted) => return self.known.set(&repeated.note, Some(counted)),
                // It has been cleaned up meanwhile: begin a new one.
                Err(error) if error.reason == Reason::NotFound => {
                    self.known.set(&repeated.note, None)
                }
                Err(error) => debug!(%error, "event not written yet"),
            }
            sleep(backoff.next_delay()).await;
        }
        metrics::event_dropped();
        warn!(reason = repeated.note.reason, "event dropped");
    }

    async fn try_to_write(&self, repeated: &Repeated) -> Result<Counted, ApiError> {
        let Repeated { note, times } = repeated;
        match self.known.get(note) {
            Some(known) => self.count_on(known, note, *times).await,
            None => {
                let event = self.event(note, *times);
                self.gateway.create(&event).await?;
                Ok(Counted {
                    event: Key::of(&event.metadata),
                    count: *times,
                })
            }
        }
    }

    async fn count_on(
        &self,
        known: &Counted,
        note: &Note,
        times: i32,
    ) -> Result<Counted, ApiError> {
        let count = known.count.saturating_add(times);
        let patch = serde_json::json!({ "count": count, "lastTimestamp": Time::from(note.at) });
        self.gateway.patch::<Event>(&known.event, "", patch).await?;
        Ok(Counted {
            event: known.event.clone(),
            count,
        })
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
                component: self.component.clone(),
                ..EventSource::default()
            },
            first_timestamp: note.at.into(),
            last_timestamp: note.at.into(),
            count,
            r#type: note.kind.name().to_owned(),
            reporting_component: self.component.clone(),
            reporting_instance: self.instance.clone(),
            ..Event::default()
        }
    }
}
