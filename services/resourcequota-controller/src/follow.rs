//! Follows what changes in the namespaces that have quotas.
//!
//! One stream of metadata is open while there are quotas. It begins anew, where it was, when a namespace gets its first
//! quota or loses its last one. The quotas of a namespace are counted once the stream includes it: what has changed
//! before is in that count, and what changes later is in the stream.

use std::collections::BTreeSet;
use std::time::Duration;

use setpoint_controller::{Backoff, Client, QueueHandle, Reader, Whole};
use setpoint_model::Revision;
use setpoint_proto::core::ResourceQuota;
use setpoint_proto::setpoint::{MetadataEvent, WatchMetadataRequest};
use setpoint_proto::{ApiError, Cause, Reason};
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::warn;

use crate::concerns;
use crate::pace::Pace;
use crate::tally::MEASURED;

/// The first delay before a new stream, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The namespaces that have quotas.
pub(crate) type Namespaces = BTreeSet<String>;

/// The stream of one term, and its reach.
pub(crate) struct Follower<'a> {
    quotas: &'a Reader<Whole<ResourceQuota>>,
    pace: &'a Pace,
    queue: &'a QueueHandle,
    namespaces: watch::Receiver<Namespaces>,
    /// The namespaces whose changes up to `reached` have arrived.
    covered: Namespaces,
    reached: Option<Revision>,
}

impl<'a> Follower<'a> {
    pub(crate) fn new(
        quotas: &'a Reader<Whole<ResourceQuota>>,
        pace: &'a Pace,
        queue: &'a QueueHandle,
        namespaces: watch::Receiver<Namespaces>,
    ) -> Self {
        Self {
            quotas,
            pace,
            queue,
            namespaces,
            covered: Namespaces::new(),
            reached: None,
        }
    }

    /// Follows for ever.
    pub(crate) async fn follow(mut self, client: &Client) {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let wanted = self.namespaces.borrow_and_update().clone();
            if wanted.is_empty() {
                self.covered.clear();
                // The reconciler keeps the sender.
                let _ = self.namespaces.changed().await;
                continue;
            }
            let Err(error) = self.watch(client, wanted, &mut backoff).await else {
                continue;
            };
            if error.reason == Reason::Expired {
                (self.covered, self.reached) = (Namespaces::new(), None);
            }
            warn!(%error, "the watch of the objects that quotas count was lost: resuming");
            sleep(backoff.next_delay()).await;
        }
    }

    /// Runs one stream, until other namespaces are wanted.
    async fn watch(
        &mut self,
        client: &Client,
        wanted: Namespaces,
        backoff: &mut Backoff,
    ) -> Result<(), ApiError> {
        let after = self.reached.unwrap_or_else(|| self.quotas.reached());
        let request = WatchMetadataRequest {
            revision: after.to_string(),
            namespaces: wanted.iter().cloned().collect(),
            changes_of: MEASURED.map(str::to_owned).into(),
            ..WatchMetadataRequest::default()
        };
        let mut events = client.watch_some_metadata(request).await?;
        for namespace in wanted.difference(&self.covered) {
            self.count(namespace);
        }
        (self.covered, self.reached) = (wanted, Some(after));
        loop {
            tokio::select! {
                _ = self.namespaces.changed() => return Ok(()),
                event = events.message() => match event? {
                    Some(event) => {
                        backoff.reset();
                        self.apply(event)?;
                    }
                    None => return Err(ApiError::new(Reason::ServiceUnavailable, "the stream ended")),
                },
            }
        }
    }

    /// Adds the quotas of a namespace.
    fn count(&self, namespace: &str) {
        for quota in self.quotas.in_namespace(namespace) {
            self.queue.add(quota.meta.key.clone(), None);
        }
    }

    /// Adds the quotas that a change concerns.
    fn apply(&mut self, event: MetadataEvent) -> Result<(), ApiError> {
        let reached = event.revision.parse().map_err(|_| {
            let message = format!("the gateway sent the revision {:?}", event.revision);
            ApiError::new(Reason::InternalError, message)
        })?;
        self.reached = Some(reached);
        if let Some(object) = event.object {
            let namespace = &object.metadata.namespace;
            self.changed(namespace, &object.resource, event.cause);
        }
        Ok(())
    }

    fn changed(&self, namespace: &str, resource: &str, cause: Option<Cause>) {
        for quota in self.quotas.in_namespace(namespace) {
            if concerns(&quota.object.spec, resource) {
                let key = quota.meta.key.clone();
                self.pace.add(self.queue, key, cause.clone());
            }
        }
    }
}
