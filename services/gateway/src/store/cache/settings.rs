//! How much of the past the cache keeps, and how long it makes its callers wait.

use std::time::Duration;

/// How much of the past the cache keeps, and how long it makes its callers wait.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many revisions before its start the cache reads, so that watches resume across a restart.
    pub history: u64,
    /// How many changes the log holds: a watcher further behind is told `Expired`.
    pub log_records: usize,
    /// How many bytes of objects the log holds.
    pub log_bytes: usize,
    /// How long a watch may be silent before it is told how far it has come.
    pub bookmark_every: Duration,
    /// How long a watcher's client may leave what it was given before the watcher is told `Expired`.
    pub stall: Duration,
    /// How long a read waits for the revision that it asks for.
    pub patience: Duration,
    /// The longest time between two comparisons of the cache with its store, apart from the one whenever the store is
    /// followed again; zero for none.
    pub check_interval: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            history: 1000,
            log_records: 10_000,
            log_bytes: 32 << 20,
            bookmark_every: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            patience: Duration::from_secs(3),
            check_interval: Duration::from_secs(5 * 60),
        }
    }
}
