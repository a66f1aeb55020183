//! Pods that fit nowhere: they wait until something that matters changes.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
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
    since: Timestamp,
    attempts: u32,
    not_before: Instant,
    /// Something has changed since it was refused.
    woken: bool,
}

impl Backlog {
    /// The Pod, which is there since then, fitted nowhere, again.
    pub fn refuse(&self, key: &Key, since: Timestamp) {
        let mut waiting = self.waiting.lock();
        let (attempts, since) = waiting
            .get(key)
            .map_or((0, since), |wait| (wait.attempts, wait.since));
        let wait = Wait {
            since,
            attempts: attempts + 1,
            not_before: Instant::now() + backoff(attempts),
            woken: false,
        };
        waiting.insert(key.clone(), wait);
    }

    /// How often the Pod was refused so far, and since when it was there when that was first done.
    pub fn refused(&self, key: &Key) -> Option<(u32, Timestamp)> {
        let waiting = self.waiting.lock();
        waiting.get(key).map(|wait| (wait.attempts, wait.since))
    }

    /// The Pod has a node, or is gone.
    pub fn forget(&self, key: &Key) {
        self.waiting.lock().remove(key);
    }

    /// Something changed: each Pod gets another try as soon as its backoff is over.
    pub fn wake(&self, queue: &Queue<Key>) {
        let now = Instant::now();
        for (key, wait) in self.waiting.lock().iter_mut() {
            wait.woken = true;
            queue.add_after(key.clone(), wait.not_before.saturating_duration_since(now));
        }
    }

    /// How many Pods wait for the end of their backoff, and how many for something to change.
    pub fn counts(&self, now: Instant) -> (usize, usize) {
        let waiting = self.waiting.lock();
        let backoff = |wait: &&Wait| wait.woken && wait.not_before > now;
        let stuck = |wait: &&Wait| !wait.woken;
        (
            waiting.values().filter(backoff).count(),
            waiting.values().filter(stuck).count(),
        )
    }
}

fn backoff(attempts: u32) -> Duration {
    let doubled = 2u32.saturating_pow(attempts);
    FIRST_BACKOFF.saturating_mul(doubled).min(LONGEST_BACKOFF)
}

#[cfg(test)]
mod tests {
    use setpoint_machinery::queue::Limiter;

    use super::*;

    #[test]
    fn backoff_doubles_from_one_second_to_ten() {
        let seconds = |attempts| backoff(attempts).as_secs();
        assert_eq!([0, 1, 2, 3, 4, 40].map(seconds), [1, 2, 4, 8, 10, 10]);
    }

    #[test]
    fn a_refused_pod_is_stuck_until_something_changes_and_then_backs_off() {
        let (backlog, queue) = (Backlog::default(), Queue::new("test", Limiter::default()));
        let key = Key::new("default", "web");
        let now = Instant::now();
        backlog.refuse(&key, Timestamp::UNIX_EPOCH);
        assert_eq!(backlog.counts(now), (0, 1));
        backlog.wake(&queue);
        assert_eq!(backlog.counts(now), (1, 0));
        assert_eq!(
            backlog.counts(now + LONGEST_BACKOFF),
            (0, 0),
            "it is active"
        );
        backlog.refuse(&key, Timestamp::now());
        assert_eq!(backlog.refused(&key), Some((2, Timestamp::UNIX_EPOCH)));
    }
}
