//! The events that a watcher has been given and its client has not yet taken.
//!
//! A client that stops reading does not poll its watcher, so the watcher cannot notice. Its events would keep objects
//! in memory that nothing else refers to: they are dropped after a while, and the watch ends with `Expired`.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_codec::Kind;
use tokio::time::{Instant, interval};

use super::{Event, Shared, metrics};
use crate::Error;

/// The least time between two sweeps: an interval of zero would panic.
const SHORTEST_TICK: Duration = Duration::from_millis(1);

/// The events of one watcher.
pub(super) struct WatchBuffer {
    events: VecDeque<Event>,
    /// The time at which the client last took an event, or asked for one.
    polled: Instant,
    stalled: bool,
    kind: &'static Kind,
}

/// The buffers of all watchers.
pub(super) type Buffers = Mutex<Vec<Weak<Mutex<WatchBuffer>>>>;

impl WatchBuffer {
    /// Creates a buffer with these events, and adds it to those that are swept.
    pub fn new(buffers: &Buffers, events: Vec<Event>, kind: &'static Kind) -> Arc<Mutex<Self>> {
        let buffer = Arc::new(Mutex::new(Self {
            events: events.into(),
            polled: Instant::now(),
            stalled: false,
            kind,
        }));
        buffers.lock().push(Arc::downgrade(&buffer));
        buffer
    }

    /// Takes the next event, if there is one.
    ///
    /// # Errors
    /// `Expired` after the events were dropped.
    pub fn take(&mut self) -> Result<Option<Event>, Error> {
        if self.stalled {
            return Err(Error::Expired);
        }
        self.polled = Instant::now();
        Ok(self.events.pop_front())
    }

    /// Replaces the events.
    pub fn fill(&mut self, events: Vec<Event>) {
        self.events = events.into();
    }

    fn sweep(&mut self, stall: Duration) {
        if !self.events.is_empty() && self.polled.elapsed() > stall {
            self.events = VecDeque::new();
            self.stalled = true;
            metrics::stalled(self.kind);
        }
    }
}

/// Drops the events of stalled watchers, for ever.
pub(super) async fn sweep(shared: Arc<Shared>) {
    let stall = shared.settings.stall;
    let mut ticks = interval((stall / 4).max(SHORTEST_TICK));
    loop {
        ticks.tick().await;
        let mut buffers = shared.buffers.lock();
        buffers.retain(|buffer| {
            let Some(buffer) = buffer.upgrade() else {
                return false;
            };
            buffer.lock().sweep(stall);
            true
        });
    }
}
