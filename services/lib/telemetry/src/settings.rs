//! The settings of traces.

use std::sync::OnceLock;
use std::time::Duration;

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// The settings of traces, which are global to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The age after which a trace is not continued: a new trace with a link to it is started.
    pub trace_age: Duration,
    /// Whether reconciles without actions are recorded as spans.
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
    /// Sets the global settings. Only the first call has an effect.
    pub(crate) fn set(self) {
        let _ = SETTINGS.set(self);
    }

    /// Returns the global settings; the defaults until telemetry is started.
    pub fn get() -> Self {
        SETTINGS.get().copied().unwrap_or_default()
    }
}
