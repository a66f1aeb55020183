//! Pods that fit nowhere: they wait until something that matters changes.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_machinery::Queue;
use setpoint_model::Key;
use tokio::time::Instant;

/// Upstream's `podInitialBackoffSeconds` and `podMaxBackoffSeconds`.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
/// Upstream's `podMaxInUnschedulablePodsDuration`: the insurance against a change that nobody thought of.
pub const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Unschedulable Pods, each with the time before which another try is not worth it.
#[derive(Debug, Default)]
pub struct Backlog {
    waiting: Mutex<HashMap<Key, Wait>>,
}

#[derive(Debug)]
struct Wait {
    attempts: u32,
    not_before: Instant,
}

impl Backlog {
    /// The Pod fitted nowhere, again.
    pub fn refuse(&self, key: &Key) {
        let mut waiting = self.waiting.lock();
        let attempts = waiting.get(key).map_or(0, |wait| wait.attempts);
        let not_before = Instant::now() + backoff(attempts);
        let attempts = attempts + 1;
        waiting.insert(
            key.clone(),
            Wait {
                attempts,
                not_before,
            },
        );
    }

    /// The Pod has a node, or is gone.
    pub fn forget(&self, key: &Key) {
        self.waiting.lock().remove(key);
    }

    /// Something changed: each Pod gets another try as soon as its backoff is over.
    pub fn wake(&self, queue: &Queue<Key>) {
        let now = Instant::now();
        for (key, wait) in self.waiting.lock().iter() {
            queue.add_after(key.clone(), wait.not_before.saturating_duration_since(now));
        }
    }

    /// How many Pods wait.
    pub fn len(&self) -> usize {
        self.waiting.lock().len()
    }
}

fn backoff(attempts: u32) -> Duration {
    let doubled = 2u32.saturating_pow(attempts);
    FIRST_BACKOFF.saturating_mul(doubled).min(LONGEST_BACKOFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_from_one_second_to_ten() {
        let seconds = |attempts| backoff(attempts).as_secs();
        assert_eq!([0, 1, 2, 3, 4, 40].map(seconds), [1, 2, 4, 8, 10, 10]);
    }
}
