//! What a watcher has been given and its client has not yet taken.
//!
//! A client that stops reading is not noticed by its watcher, which is not even asked for more. What it was given would
//! keep objects in memory that are long gone from everywhere else; so it is taken back after a while.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_codec::Kind;
use tokio::time::{Instant, interval};

use super::{Event, Shared, metrics};
use crate::store::Error;

/// An interval of zero is none.
const SHORTEST_TICK: Duration = Duration::from_millis(1);

/// What one watcher has been given.
pub(super) struct Pending {
    events: VecDeque<Event>,
    /// When the client last took or was given something.
    moved: Instant,
    stalled: bool,
    kind: &'static Kind,
}

/// All watchers' pending events, as the sweeper sees them.
pub(super) type Ledger = Mutex<Vec<Weak<Mutex<Pending>>>>;

impl Pending {
    /// Begins with these.
    pub fn new(ledger: &Ledger, events: Vec<Event>, kind: &'static Kind) -> Arc<Mutex<Self>> {
        let pending = Arc::new(Mutex::new(Self {
            events: events.into(),
            moved: Instant::now(),
            stalled: false,
            kind,
        }));
        ledger.lock().push(Arc::downgrade(&pending));
        pending
    }

    /// The next event, if there is one.
    ///
    /// # Errors
    /// `Expired` when they were taken back.
    pub fn take(&mut self) -> Result<Option<Event>, Error> {
        if self.stalled {
            return Err(Error::Expired);
        }
        self.moved = Instant::now();
        Ok(self.events.pop_front())
    }

    pub fn fill(&mut self, events: Vec<Event>) {
        self.events = events.into();
    }

    fn sweep(&mut self, stall: Duration) {
        if !self.events.is_empty() && self.moved.elapsed() > stall {
            self.events = VecDeque::new();
            self.stalled = true;
            metrics::stalled(self.kind);
        }
    }
}

/// Takes back what nobody takes, for ever.
pub(super) async fn sweep(shared: Arc<Shared>) {
    let stall = shared.settings.stall;
    let mut ticks = interval((stall / 4).max(SHORTEST_TICK));
    loop {
        ticks.tick().await;
        let mut ledger = shared.pending.lock();
        ledger.retain(|pending| {
            let Some(pending) = pending.upgrade() else {
                return false;
            };
            pending.lock().sweep(stall);
            true
        });
    }
}
