//! The pace of counts: objects are read anew each time, so a count is followed by a pause.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_controller::QueueHandle;
use setpoint_model::Key;
use setpoint_proto::Cause;
use tokio::time::Instant;

/// The least time between two counts for changes of objects. Each count also waits for ten times as long as the last
/// one took.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
const PAUSE: u32 = 10;

/// The pauses between counts for changes of objects, which are read anew each time.
#[derive(Default)]
pub(crate) struct Pace(Mutex<HashMap<Key, Instant>>);

impl Pace {
    /// Adds a quota as soon as its pause is over.
    pub(crate) fn add(&self, queue: &QueueHandle, key: Key, cause: Option<Cause>) {
        let until = self.0.lock().get(&key).copied();
        let wait = until.map(|until| until.saturating_duration_since(Instant::now()));
        match wait.filter(|wait| !wait.is_zero()) {
            None => queue.add(key, cause),
            Some(wait) => queue.add_after(key, wait),
        }
    }

    /// Begins the pause after a count that began at this time.
    pub(crate) fn rest(&self, key: &Key, began: Instant) {
        let pause = began.elapsed().saturating_mul(PAUSE);
        let pause = pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        self.0.lock().insert(key.clone(), Instant::now() + pause);
    }

    /// Forgets a quota that is gone.
    pub(crate) fn forget(&self, key: &Key) {
        self.0.lock().remove(key);
    }

    /// Forgets all quotas.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}
