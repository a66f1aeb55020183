//! What this process was told about its traces; set once, as the process starts.

use std::sync::OnceLock;
use std::time::Duration;

static POLICY: OnceLock<Policy> = OnceLock::new();

/// How traces are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// A trace older than this is not continued: what follows from it begins another, with a link back.
    pub trace_age: Duration,
    /// Whether rounds that found nothing to do leave spans, too.
    pub noop_rounds: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            trace_age: Duration::from_secs(600),
            noop_rounds: false,
        }
    }
}

impl Policy {
    /// Holds from now on; only the first call counts.
    pub fn set(self) {
        let _ = POLICY.set(self);
    }

    /// What holds.
    pub fn get() -> Self {
        POLICY.get().copied().unwrap_or_default()
    }
}
