//! The health of the cache, from the reports of its tasks.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::watch;

/// The health of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// The first relist is not complete.
    Loading,
    /// The cache follows its store.
    Following,
    /// The cache cannot follow its store, for this reason, and tries again.
    Behind(String),
}

/// Collects reports. The health is that of the reflector, unless a task keeps panicking.
pub(super) struct Reports {
    health: watch::Sender<Health>,
    state: Mutex<State>,
}

struct State {
    reflector: Health,
    /// Tasks that keep panicking, with the reason of each.
    failing: BTreeMap<&'static str, String>,
}

impl Default for Reports {
    fn default() -> Self {
        Self {
            health: watch::Sender::new(Health::Loading),
            state: Mutex::new(State {
                reflector: Health::Loading,
                failing: BTreeMap::new(),
            }),
        }
    }
}

impl Reports {
    /// Sets the health of the reflector.
    pub fn set(&self, reflector: Health) {
        self.change(|state| state.reflector = reflector);
    }

    /// Sets the health of a restarted reflector to `Behind`, unless the first relist is not complete.
    pub fn restarted(&self) {
        self.change(|state| {
            if state.reflector != Health::Loading {
                state.reflector = Health::Behind("everything is being read again".into());
            }
        });
    }

    /// Records a report of a task's supervisor.
    pub fn report(&self, task: &'static str, report: Result<(), String>) {
        self.change(|state| match report {
            Ok(()) => _ = state.failing.remove(task),
            Err(reason) => _ = state.failing.insert(task, reason),
        });
    }

    pub fn subscribe(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    pub fn is_following(&self) -> bool {
        *self.health.borrow() == Health::Following
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        let health = match state.failing.values().next() {
            Some(reason) => Health::Behind(reason.clone()),
            None => state.reflector.clone(),
        };
        self.health.send_if_modified(|current| {
            let changed = *current != health;
            *current = health;
            changed
        });
    }
}
