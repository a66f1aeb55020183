//! How long a key has waited, and for what, before its worker took it.

use tokio::time::Instant;

/// Why a key was delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Its work had failed.
    Backoff,
    /// Its work wanted another look.
    Again,
}

/// The moments on a key's way to its worker.
#[derive(Clone, Debug)]
pub struct Waits {
    /// When the queue began: what happened before that had to wait for somebody to take over.
    pub opened: Instant,
    /// Why it rested before it was queued, and since when; `None` if it was queued at once.
    pub rest: Option<(Rest, Instant)>,
    /// When it was queued.
    pub queued: Instant,
    /// When its worker took it.
    pub taken: Instant,
}
