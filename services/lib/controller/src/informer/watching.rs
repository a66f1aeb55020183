//! The informer's task: watches, applies the events and calls the handlers; watches again when the watch ends.

use std::time::Duration;

use setpoint_model::Revision;
use setpoint_proto::{ApiError, Reason, Resource};
use setpoint_task::catch_unwind;
use tokio::time::sleep;
use tracing::{debug, error, info, warn};

use super::phase::{Event, Phase};
use super::{Delta, Informer};
use crate::{Backoff, View};

/// The first delay before a new watch: not noticed when a gateway is replaced, and no load on one that starts.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl<V: View> Informer<V> {
    pub(super) async fn keep_watching(&mut self) {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        self.phase = Phase::Empty;
        loop {
            let ended = self.watch(&mut backoff).await;
            self.phase.end(ended.as_ref().err());
            log_end::<V>(ended.err());
            sleep(backoff.next_delay()).await;
        }
    }

    /// Runs one watch to its end.
    async fn watch(&mut self, backoff: &mut Backoff) -> Result<(), ApiError> {
        let request = self.phase.request(&self.selection);
        if request.send_initial_events {
            self.cache.progress.fetching();
        }
        let mut events = self.gateway.watch(request).await?;
        self.phase.begin();
        loop {
            let event = tokio::select! {
                biased;
                event = events.message() => event?,
                () = self.cache.progress.starved(self.phase.reached()) => {
                    self.phase = Phase::Empty;
                    None
                }
            };
            let Some(event) = event else { return Ok(()) };
            backoff.reset();
            // A new watch would return the unreadable event again, so it is skipped.
            match catch_unwind("informer", || Event::decode(&event)) {
                Ok(Ok(event)) => self.apply(event),
                Ok(Err(error)) => {
                    error!(resource = V::Object::RESOURCE, %error, "unreadable event");
                }
                Err(panicked) => {
                    error!(resource = V::Object::RESOURCE, %panicked, "unreadable event");
                }
            }
        }
    }

    fn apply(&mut self, event: Event<V>) {
        match (&mut self.phase, event) {
            (Phase::Filling(next), Event::Put(cached, _)) => _ = next.put(cached),
            (Phase::Filling(next), Event::Remove(key, cause, revision)) => {
                next.remove(&key, cause, revision);
            }
            (Phase::Filling(_), Event::Bookmark(revision, true)) => self.swap(revision),
            (Phase::Filling(_), Event::Bookmark(_, false)) | (Phase::Empty, _) => {}
            (Phase::Following(_), Event::Put(cached, revision)) => {
                let deltas = self.cache.store.write().put(cached);
                self.notify(&deltas, revision);
            }
            (Phase::Following(_), Event::Remove(key, cause, revision)) => {
                let delta = self.cache.store.write().remove(&key, cause, revision);
                self.notify(delta.as_slice(), revision);
            }
            (Phase::Following(_), Event::Bookmark(revision, _)) => self.notify(&[], revision),
        }
    }

    /// Replaces the cache with the complete initial state in one step.
    fn swap(&mut self, revision: Revision) {
        let Phase::Filling(next) = std::mem::replace(&mut self.phase, Phase::Following(revision))
        else {
            return;
        };
        let deltas = self.cache.store.read().difference(&next, revision);
        info!(
            resource = V::Object::RESOURCE,
            objects = next.len(),
            %revision,
            "synced"
        );
        let former = std::mem::replace(&mut *self.cache.store.write(), next);
        drop(former); // After the lock is released: it may hold many objects.
        self.notify(&deltas, revision);
        self.cache.progress.renewed(revision);
    }

    fn notify(&mut self, deltas: &[Delta<V>], revision: Revision) {
        for delta in deltas {
            for handler in &mut *self.handlers.lock() {
                let _ = catch_unwind("event-handler", || handler(delta));
            }
        }
        self.phase = Phase::Following(revision);
        self.cache.progress.advance(revision);
    }
}

fn log_end<V: View>(error: Option<ApiError>) {
    let resource = V::Object::RESOURCE;
    match error {
        None => debug!(resource, "watch ended"),
        Some(error) if error.reason == Reason::Expired => {
            info!(resource, %error, "watch expired: fetching the whole state");
        }
        Some(error) => warn!(resource, %error, "watch lost: resuming"),
    }
}
