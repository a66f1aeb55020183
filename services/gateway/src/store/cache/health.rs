//! The health of the cache, as its tasks report it.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::watch;

/// How the cache stands to its store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It has not yet read everything.
    Loading,
    /// It follows every change.
    Following,
    /// It cannot follow, for this reason, and tries again.
    Behind(String),
}

/// The health of the cache: that of its feed, unless one of its tasks keeps panicking.
pub(super) struct Reports {
    told: watch::Sender<Health>,
    state: Mutex<State>,
}

struct State {
    feed: Health,
    /// Tasks that keep panicking, with the reason.
    failing: BTreeMap<&'static str, String>,
}

impl Default for Reports {
    fn default() -> Self {
        Self {
            told: watch::Sender::new(Health::Loading),
            state: Mutex::new(State {
                feed: Health::Loading,
                failing: BTreeMap::new(),
            }),
        }
    }
}

impl Reports {
    /// Sets how far the feed is.
    pub fn set(&self, feed: Health) {
        self.change(|state| state.feed = feed);
    }

    /// Sets the feed's health to `Behind`, unless it has not read anything yet.
    pub fn restarted(&self) {
        self.change(|state| {
            if state.feed != Health::Loading {
                state.feed = Health::Behind("everything is read anew".into());
            }
        });
    }

    /// Takes a report of the task's supervisor.
    pub fn report(&self, task: &'static str, report: Result<(), String>) {
        self.change(|state| match report {
            Ok(()) => _ = state.failing.remove(task),
            Err(reason) => _ = state.failing.insert(task, reason),
        });
    }

    pub fn subscribe(&self) -> watch::Receiver<Health> {
        self.told.subscribe()
    }

    pub fn is_following(&self) -> bool {
        *self.told.borrow() == Health::Following
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        let health = match state.failing.values().next() {
            Some(reason) => Health::Behind(reason.clone()),
            None => state.feed.clone(),
        };
        self.told.send_if_modified(|told| {
            let changed = *told != health;
            *told = health;
            changed
        });
    }
}
