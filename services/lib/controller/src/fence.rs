//! The term under which a write is made, and outside which it is refused.

use std::fmt;

/// Names a term of a lease. A write that carries it commits only while that term still stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fence {
    /// Where the Lease is.
    pub namespace: String,
    /// The Lease's name; empty for no fence at all.
    pub lease: String,
    /// As the gateway counts them: it says so in the cause of each write of the Lease.
    pub term: u64,
}

impl Fence {
    /// A fence around nothing, for a process that runs without election.
    pub fn open() -> Self {
        Self::default()
    }

    /// Does it hold nothing back?
    pub const fn is_open(&self) -> bool {
        self.lease.is_empty()
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.namespace, self.lease, self.term)
    }
}
