//! The times at which servers are checked, without I/O.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use setpoint_model::Key;
use tokio::time::Instant;

use crate::aggregation::Remote;

/// The interval of checks of a server that nothing is known about (upstream: the resync period).
const INTERVAL: Duration = Duration::from_secs(30);
/// The delay after the first of several failures. It doubles up to [`INTERVAL`].
const RETRY: Duration = Duration::from_millis(250);

/// The checks by the names of their APIServices.
#[derive(Default)]
pub(super) struct Schedule(BTreeMap<String, Entry>);

struct Entry {
    remote: Arc<Remote>,
    due: Instant,
    failures: u32,
    is_running: bool,
    /// Whether something has changed while the check was running.
    is_outdated: bool,
}

impl Schedule {
    /// Adds the servers that are new, removes those that are gone, and makes the checks of changed ones due.
    pub(super) fn follow(&mut self, remotes: &[Arc<Remote>], now: Instant) {
        let mut before = std::mem::take(&mut self.0);
        for remote in remotes {
            let entry = before
                .remove(&remote.name)
                .map(|entry| entry.following(remote, now));
            let entry = entry.unwrap_or_else(|| Entry::new(remote, now));
            self.0.insert(remote.name.clone(), entry);
        }
    }

    /// Makes the checks of the servers of a Service due.
    pub(super) fn touch(&mut self, service: &Key, now: Instant) {
        let entries = self.0.values_mut();
        let own = entries.filter(|entry| entry.remote.server.address().service == *service);
        own.for_each(|entry| entry.touch(now));
    }

    /// Returns at most `room` servers to check now. No other check of them starts before [`checked`](Self::checked).
    pub(super) fn take_due(&mut self, now: Instant, room: usize) -> Vec<Arc<Remote>> {
        let waiting = self.0.values_mut().filter(|entry| !entry.is_running);
        let mut due: Vec<_> = waiting.filter(|entry| entry.due <= now).collect();
        due.sort_by_key(|entry| entry.due);
        let started = due.into_iter().take(room).map(|entry| {
            (entry.is_running, entry.is_outdated) = (true, false);
            entry.remote.clone()
        });
        started.collect()
    }

    /// Returns the time of the next check that is not running.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let waiting = self.0.values().filter(|entry| !entry.is_running);
        waiting.map(|entry| entry.due).min()
    }

    /// Plans the next check of a server.
    pub(super) fn checked(&mut self, name: &str, is_passed: bool, now: Instant) {
        let Some(entry) = self.0.get_mut(name) else {
            return;
        };
        entry.is_running = false;
        entry.failures = if is_passed { 0 } else { entry.failures + 1 };
        let delay = match (entry.is_outdated, entry.failures) {
            (true, _) => Duration::ZERO,
            (_, 0) => INTERVAL,
            (_, failures) => INTERVAL.min(RETRY.saturating_mul(1 << (failures - 1).min(16))),
        };
        entry.due = now + delay;
    }
}

impl Entry {
    fn new(remote: &Arc<Remote>, now: Instant) -> Self {
        Self {
            remote: remote.clone(),
            due: now,
            failures: 0,
            is_running: false,
            is_outdated: false,
        }
    }

    /// Returns the entry of a newer version of the APIService. One that only other fields have changed of needs no
    /// check.
    fn following(mut self, remote: &Arc<Remote>, now: Instant) -> Self {
        let is_same = Arc::ptr_eq(&self.remote.server, &remote.server)
            && self.remote.is_available == remote.is_available;
        self.remote = remote.clone();
        if !is_same {
            self.touch(now);
        }
        self
    }

    fn touch(&mut self, now: Instant) {
        self.failures = 0;
        match self.is_running {
            true => self.is_outdated = true,
            false => self.due = now,
        }
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::apiregistration::{ApiService, ServiceReference};
    use setpoint_store::cache::{Cache, Settings};
    use setpoint_store::{Memory, Store};

    use super::*;
    use crate::aggregation::Aggregator;
    use crate::registry::Registry;

    fn registry() -> Registry {
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let cache = Cache::start(store.clone(), Settings::default());
        Registry::new(store, cache).with_aggregator(Aggregator::default())
    }

    /// Returns the server of an APIService; that of `before` if it is the same.
    fn remote(registry: &Registry, service: &str, before: Option<&Remote>) -> Arc<Remote> {
        let mut declared = ApiService::default();
        declared.metadata.name = format!("v1.{service}.io");
        declared.spec.group = format!("{service}.io");
        declared.spec.service = Some(ServiceReference {
            namespace: "default".into(),
            name: service.into(),
            port: Some(443),
        });
        Arc::new(Remote::of(&declared, before, registry).unwrap())
    }

    fn names(due: &[Arc<Remote>]) -> Vec<&str> {
        due.iter().map(|remote| remote.name.as_str()).collect()
    }

    #[tokio::test]
    async fn each_server_is_checked_at_intervals_and_sooner_after_failures() {
        let (registry, now) = (registry(), Instant::now());
        let (a, b) = (remote(&registry, "a", None), remote(&registry, "b", None));
        let mut schedule = Schedule::default();
        schedule.follow(&[a.clone(), b.clone()], now);
        assert_eq!(names(&schedule.take_due(now, 1)), ["v1.a.io"]);
        assert_eq!(names(&schedule.take_due(now, 8)), ["v1.b.io"]);
        assert!(schedule.take_due(now, 8).is_empty());
        assert_eq!(schedule.next_due(), None);
        schedule.checked("v1.a.io", true, now);
        assert_eq!(schedule.next_due(), Some(now + INTERVAL));
        schedule.checked("v1.b.io", false, now);
        assert_eq!(schedule.next_due(), Some(now + RETRY));
        assert_eq!(names(&schedule.take_due(now + RETRY, 8)), ["v1.b.io"]);
        schedule.checked("v1.b.io", false, now);
        assert_eq!(schedule.next_due(), Some(now + 2 * RETRY));
        schedule.follow(&[], now);
        assert_eq!(schedule.next_due(), None);
    }

    #[tokio::test]
    async fn a_change_during_a_check_leads_to_another() {
        let (registry, now) = (registry(), Instant::now());
        let a = remote(&registry, "a", None);
        let mut schedule = Schedule::default();
        schedule.follow(std::slice::from_ref(&a), now);
        schedule.take_due(now, 8);
        schedule.touch(&Key::new("default", "other"), now);
        schedule.checked(&a.name, true, now);
        assert_eq!(schedule.next_due(), Some(now + INTERVAL));
        schedule.touch(&Key::new("default", "a"), now);
        schedule.take_due(now, 8);
        schedule.touch(&Key::new("default", "a"), now);
        schedule.checked(&a.name, true, now);
        assert_eq!(schedule.next_due(), Some(now));
    }

    #[tokio::test]
    async fn only_a_change_of_the_server_needs_a_check() {
        let (registry, now) = (registry(), Instant::now());
        let a = remote(&registry, "a", None);
        let mut schedule = Schedule::default();
        schedule.follow(std::slice::from_ref(&a), now);
        schedule.take_due(now, 8);
        schedule.checked(&a.name, true, now);
        schedule.follow(&[remote(&registry, "a", Some(&a))], now);
        assert_eq!(schedule.next_due(), Some(now + INTERVAL));
        schedule.follow(&[remote(&registry, "a", None)], now);
        assert_eq!(schedule.next_due(), Some(now));
    }
}
