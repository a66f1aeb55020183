//! Backoff: delays the deletion of failed Pods, so that a node that rejects Pods does not get them without a pause.
//!
//! As upstream: the first failure on a node is repaired at once, then the delay doubles from 1 s to 15 min, counted
//! from the deletion before, and a node without failures for twice that time begins anew. Failed Pods are deleted and
//! leave no record, so the delays are kept in memory; a new leader begins anew, too.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_model::Key;

use crate::DaemonSetView;

/// The delay after the first failure.
const BASE: Duration = Duration::from_secs(1);
/// The longest delay.
pub const LONGEST: Duration = Duration::from_secs(15 * 60);

/// The deletions of failed Pods on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The time of the last one.
    pub last: Timestamp,
    /// The delay of the next one.
    pub delay: Duration,
}

impl Backoff {
    /// Returns the backoff after the deletion of another failed Pod.
    #[must_use]
    pub fn after(former: Option<Self>, now: Timestamp) -> Self {
        let former = former.filter(|former| !former.has_expired(now));
        let delay = former.map_or(BASE, |former| former.delay.saturating_mul(2).min(LONGEST));
        Self { last: now, delay }
    }

    /// Returns the time until a failed Pod may be deleted; zero if it may be now.
    pub(crate) fn wait(self, now: Timestamp) -> Duration {
        match self.has_expired(now) {
            true => Duration::ZERO,
            false => self.delay.saturating_sub(self.passed(now)),
        }
    }

    fn has_expired(self, now: Timestamp) -> bool {
        self.passed(now) > LONGEST.saturating_mul(2)
    }

    /// Returns the time since the last deletion; zero if the clock was set back.
    fn passed(self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_since(self.last)).unwrap_or_default()
    }
}

/// The backoffs of all DaemonSets.
#[derive(Debug, Default)]
pub(crate) struct Backoffs(Mutex<HashMap<Key, OfSet>>);

/// The backoffs of one generation of a DaemonSet, by node: a changed template is tried at once.
#[derive(Debug, Default)]
struct OfSet {
    uid: String,
    generation: i64,
    nodes: HashMap<String, Backoff>,
}

impl OfSet {
    fn is_of(&self, set: &DaemonSetView) -> bool {
        (&self.uid, self.generation) == (&set.meta.uid, set.status.observed_generation)
    }
}

impl Backoffs {
    /// Returns the backoffs of a set by node.
    pub fn of(&self, set: &DaemonSetView) -> HashMap<String, Backoff> {
        let backoffs = self.0.lock();
        let of_set = backoffs.get(&set.meta.key).filter(|it| it.is_of(set));
        of_set.map(|it| it.nodes.clone()).unwrap_or_default()
    }

    /// Records the deletion of a failed Pod, and forgets what has expired.
    pub fn deleted(&self, set: &DaemonSetView, node: &str, now: Timestamp) {
        let mut backoffs = self.0.lock();
        for of_set in backoffs.values_mut() {
            of_set.nodes.retain(|_, backoff| !backoff.has_expired(now));
        }
        backoffs.retain(|_, of_set| !of_set.nodes.is_empty());
        let of_set = backoffs.entry(set.meta.key.clone()).or_default();
        if !of_set.is_of(set) {
            *of_set = OfSet {
                uid: set.meta.uid.clone(),
                generation: set.status.observed_generation,
                nodes: HashMap::new(),
            };
        }
        let next = Backoff::after(of_set.nodes.get(node).copied(), now);
        of_set.nodes.insert(node.to_owned(), next);
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use setpoint_controller::View as _;
    use setpoint_proto::apps::DaemonSet;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    #[test]
    fn delays_double_to_fifteen_minutes_and_begin_anew_after_twice_that_time() {
        let (mut backoff, mut delays, mut now) = (None, Vec::new(), 0);
        for _ in 0..12 {
            let next = Backoff::after(backoff, at(now));
            delays.push(next.delay.as_secs());
            now += next.delay.as_secs() as i64;
            assert_eq!(next.wait(at(now - 1)), Duration::from_secs(1));
            assert_eq!(next.wait(at(now)), Duration::ZERO);
            backoff = Some(next);
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
        let later = |seconds: i64| Backoff::after(backoff, at(now + seconds)).delay;
        assert_eq!([900, 901].map(later), [LONGEST, BASE]);
        let later = Backoff::after(backoff, at(now + 901));
        let set_back = later.wait(at(0));
        assert_eq!(set_back, BASE, "it waits no longer than the delay");
    }

    #[test]
    fn a_new_generation_of_the_set_is_tried_at_once() {
        let (backoffs, mut set) = (Backoffs::default(), DaemonSetView::of(DaemonSet::default()));
        backoffs.deleted(&set, "a", at(0));
        backoffs.deleted(&set, "a", at(1));
        assert_eq!(backoffs.of(&set)["a"].delay, BASE * 2);
        set.status.observed_generation = 2;
        assert!(backoffs.of(&set).is_empty());
        backoffs.deleted(&set, "b", at(2));
        assert_eq!(backoffs.of(&set).len(), 1);
        backoffs.deleted(&set, "c", at(2_000));
        assert_eq!(backoffs.of(&set).len(), 1, "b has expired");
        backoffs.clear();
        assert!(backoffs.of(&set).is_empty());
    }
}
