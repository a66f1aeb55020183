//! The settings of traces.

use std::sync::OnceLock;
use std::time::Duration;

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// The settings of traces, the same for the whole process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A trace older than this is not continued: what follows begins another, with a link back.
    pub trace_age: Duration,
    /// Whether reconciles that find nothing to do leave spans, too.
    pub noop_rounds: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            trace_age: Duration::from_secs(600),
            noop_rounds: false,
        }
    }
}

impl Settings {
    /// Sets the process's settings; only the first call counts.
    pub(crate) fn set(self) {
        let _ = SETTINGS.set(self);
    }

    /// Returns the process's settings, the defaults until telemetry is started.
    pub fn get() -> Self {
        SETTINGS.get().copied().unwrap_or_default()
    }
}
