//! The turns of writes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};

use crate::Call;

/// The time that a write takes, and in which others can join those that wait.
const TICK: Duration = Duration::from_millis(1);
/// The time after which the next write has its turn although this one has not ended.
const LONGEST: Duration = Duration::from_secs(30);

/// The writes that wait for their turn. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Turns(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    /// The number of turns so far.
    round: u64,
    arrivals: u64,
    writes: BTreeMap<Place, oneshot::Sender<oneshot::Sender<()>>>,
}

/// The place of a write: those that have waited for more turns go first, others in the order of processes and objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    round: u64,
    process: Arc<str>,
    call: Call,
    arrival: u64,
}

/// The turn of a write, until it is dropped.
pub(crate) struct Turn(#[expect(dead_code, reason = "its drop ends the turn")] oneshot::Sender<()>);

impl Turns {
    /// Waits for the turn of a write; `None` if the simulation has ended.
    pub(crate) async fn take(&self, process: &Arc<str>, call: &Call) -> Option<Turn> {
        let (send, receive) = oneshot::channel();
        let place = {
            let mut waiting = self.0.waiting.lock();
            waiting.arrivals += 1;
            let place = Place {
                round: waiting.round,
                process: process.clone(),
                call: call.clone(),
                arrival: waiting.arrivals,
            };
            waiting.writes.insert(place.clone(), send);
            place
        };
        self.0.arrived.notify_one();
        let _leave = Leave(self, place);
        receive.await.ok().map(Turn)
    }

    /// Waits up to `patience` for a write, lets everything else run, and carries the first one out. Returns whether
    /// there was one.
    pub(crate) async fn next(&self, patience: Duration) -> bool {
        let arrival = async {
            while self.0.waiting.lock().writes.is_empty() {
                self.0.arrived.notified().await;
            }
        };
        if timeout(patience, arrival).await.is_err() {
            return false;
        }
        sleep(TICK).await;
        let (turn, ended) = oneshot::channel();
        let first = {
            let mut waiting = self.0.waiting.lock();
            waiting.round += 1;
            waiting.writes.pop_first()
        };
        if first.is_some_and(|(_, write)| write.send(turn).is_ok()) {
            // An error says that the turn was dropped, which is its end.
            let _ = timeout(LONGEST, ended).await;
        }
        true
    }
}

/// Removes a write whose caller has gone.
struct Leave<'a>(&'a Turns, Place);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.0.waiting.lock().writes.remove(&self.1);
    }
}
