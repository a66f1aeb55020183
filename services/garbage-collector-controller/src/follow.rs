//! Follows the stream of the metadata of all objects, and builds the graph from it.
//!
//! ```text
//!            watch begins                    initial state ends
//!   Empty ───────────────────▶ Filling ───────────────────────────▶ Following
//!     ▲                           │ watch ends                          │ watch ends: resumes
//!     ├───────────────────────────┘                                     │ where it was
//!     └──────────────────────────── Expired ────────────────────────────┘
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_controller::{Backoff, Client, QueueHandle};
use setpoint_model::{Key, Revision};
use setpoint_proto::setpoint::MetadataEvent;
use setpoint_proto::{ApiError, Cause, Reason};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::graph::{Graph, Uid};
use crate::item::Item;

/// The first delay before a new watch, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// An object to look at, and the cause of that.
pub type Woken = (Arc<str>, Option<Cause>);

/// The state machine that builds the graph from events, without I/O.
pub struct Follower {
    graph: Arc<Mutex<Graph>>,
    phase: Phase,
}

enum Phase {
    Empty,
    /// The graph of the objects that have arrived, and the causes of the last writes of those that may have to be
    /// looked at.
    Filling(Graph, HashMap<Uid, Cause>),
    /// Every change up to this revision has arrived.
    Following(Revision),
}

impl Follower {
    /// Returns a follower that fills this graph, which is emptied.
    pub fn new(graph: Arc<Mutex<Graph>>) -> Self {
        *graph.lock() = Graph::default();
        Self {
            graph,
            phase: Phase::Empty,
        }
    }

    /// Returns the revision after which the next watch has to continue; `None` for all objects.
    pub const fn after(&self) -> Option<Revision> {
        match self.phase {
            Phase::Following(reached) => Some(reached),
            Phase::Empty | Phase::Filling(..) => None,
        }
    }

    /// Enters the phase of a watch that begins.
    pub fn begin(&mut self) {
        if !matches!(self.phase, Phase::Following(_)) {
            self.phase = Phase::Filling(Graph::default(), HashMap::new());
        }
    }

    /// Enters the phase after a watch that has ended, with an error or without.
    pub fn end(&mut self, error: Option<&ApiError>) {
        let expired = error.is_some_and(|error| error.reason == Reason::Expired);
        if expired || matches!(self.phase, Phase::Filling(..)) {
            self.phase = Phase::Empty;
        }
    }

    /// Applies an event. Returns the objects to look at; none before the initial state is complete.
    ///
    /// # Errors
    /// If the event is malformed.
    pub fn apply(&mut self, event: MetadataEvent) -> Result<Vec<Woken>, ApiError> {
        let revision = revision_of(&event)?;
        let MetadataEvent {
            object,
            deleted,
            cause,
            initial_events_end,
            ..
        } = event;
        let item = object.map(Item::of);
        match (&mut self.phase, item) {
            (Phase::Following(reached), item) => {
                *reached = revision;
                let item = item.as_ref();
                let woken = item.map(|item| change(&mut self.graph.lock(), item, deleted));
                let woken = woken.unwrap_or_default().into_iter();
                Ok(woken.map(|uid| (uid, cause.clone())).collect())
            }
            (Phase::Filling(graph, causes), Some(item)) => {
                graph.put(&item);
                if let Some(cause) = cause.filter(|_| item.deleting || !item.owners.is_empty()) {
                    causes.insert(item.uid.as_str().into(), cause);
                }
                Ok(Vec::new())
            }
            (Phase::Filling(..), None) if initial_events_end => Ok(self.complete(revision)),
            (Phase::Empty | Phase::Filling(..), _) => Ok(Vec::new()),
        }
    }

    /// Replaces the graph by the complete one. Deletions that were missed are found as owners that are not known.
    fn complete(&mut self, revision: Revision) -> Vec<Woken> {
        let following = Phase::Following(revision);
        let Phase::Filling(graph, causes) = std::mem::replace(&mut self.phase, following) else {
            return Vec::new();
        };
        let woken = graph.suspects().map(|uid| {
            // That the owner is deleted is the cause rather than the last write of the dependant.
            let owner = graph.waiting_owner(uid).and_then(|owner| causes.get(owner));
            (uid.clone(), owner.or_else(|| causes.get(uid)).cloned())
        });
        let woken: Vec<_> = woken.collect();
        info!(objects = graph.len(), looked_at = woken.len(), %revision, "the graph of owners is complete");
        let former = std::mem::replace(&mut *self.graph.lock(), graph);
        drop(former); // After the lock is released: it may hold many objects.
        woken
    }
}

fn change(graph: &mut Graph, item: &Item, deleted: bool) -> Vec<Uid> {
    match deleted {
        true => graph.remove(&item.uid),
        false => graph.put(item),
    }
}

fn revision_of(event: &MetadataEvent) -> Result<Revision, ApiError> {
    event.revision.parse().map_err(|_| {
        let message = format!("the gateway sent the revision {:?}", event.revision);
        ApiError::new(Reason::InternalError, message)
    })
}

/// Follows the stream for ever, and adds the objects to look at to the queue.
pub(crate) async fn follow(client: &Client, graph: &Arc<Mutex<Graph>>, queue: &QueueHandle) {
    let mut follower = Follower::new(graph.clone());
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    loop {
        let ended = watch(client, &mut follower, queue, &mut backoff).await;
        follower.end(ended.as_ref().err());
        if let Err(error) = ended {
            warn!(%error, "the watch of all objects was lost: resuming");
        }
        sleep(backoff.next_delay()).await;
    }
}

/// Runs one watch to its end.
async fn watch(
    client: &Client,
    follower: &mut Follower,
    queue: &QueueHandle,
    backoff: &mut Backoff,
) -> Result<(), ApiError> {
    let mut events = client.watch_metadata(follower.after()).await?;
    follower.begin();
    while let Some(event) = events.message().await? {
        backoff.reset();
        for (uid, cause) in follower.apply(event)? {
            queue.add(key(&uid), cause);
        }
    }
    Ok(())
}

/// Returns the key of an object in the queue. Its name would also be that of another object after it.
pub(crate) fn key(uid: &str) -> Key {
    Key::new("", uid)
}
