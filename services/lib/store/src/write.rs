//! Conditional writes, as data.

use bytes::Bytes;
use setpoint_model::{Fence, Key, Revision};
use setpoint_proto::Cause;

use super::keys;

/// A write of one object, and the conditions under which it commits.
#[derive(Clone, Debug)]
pub struct Write {
    /// The key; see [`keys`].
    pub key: String,
    /// The expected state of the key.
    pub expect: Expect,
    /// The new envelope; `None` for a deletion.
    pub value: Option<Bytes>,
    /// The lease term that must be current.
    pub fence: Option<Fence>,
    /// The change of a lease term that is part of this write.
    pub term: Option<Term>,
    /// The cause of a deletion. The cause of a put is in its envelope.
    pub cause: Option<Cause>,
    /// Expectations about other keys.
    pub preconditions: Vec<Precondition>,
}

/// An expectation about another key on which a write depends (a compare of the transaction).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precondition {
    /// The key.
    pub key: String,
    /// The expected state of the key.
    pub expect: Expect,
    /// A value to write to the key in the same transaction. Concurrent writes with the same expectation then
    /// conflict.
    pub put: Option<Bytes>,
}

/// The expected state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The key does not exist.
    Absent,
    /// The last write of the key was at this revision.
    At(Revision),
}

/// A change of the term of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub lease: String,
    /// The expected current term; `None` if there must be none.
    pub from: Option<u64>,
    /// The new term; `None` removes it with its Lease, after which every fence on the lease refuses its writes.
    pub to: Option<u64>,
}

impl Write {
    /// Returns a write that creates an object.
    pub fn create(key: impl Into<String>, value: Bytes) -> Self {
        Self::new(key.into(), Expect::Absent, Some(value))
    }

    /// Returns a write that changes an object that was last written at `revision`.
    pub fn update(key: impl Into<String>, revision: Revision, value: Bytes) -> Self {
        Self::new(key.into(), Expect::At(revision), Some(value))
    }

    /// Returns a write that deletes an object that was last written at `revision`.
    pub fn delete(key: impl Into<String>, revision: Revision) -> Self {
        Self::new(key.into(), Expect::At(revision), None)
    }

    fn new(key: String, expect: Expect, value: Option<Bytes>) -> Self {
        Self {
            key,
            expect,
            value,
            fence: None,
            term: None,
            cause: None,
            preconditions: Vec::new(),
        }
    }

    /// Sets the lease term that must be current.
    #[must_use]
    pub fn fenced(mut self, fence: Option<Fence>) -> Self {
        self.fence = fence;
        self
    }

    /// Sets the change of a lease term that is part of the write.
    #[must_use]
    pub fn advancing(mut self, term: Option<Term>) -> Self {
        self.term = term;
        self
    }

    /// Adds expectations about other keys.
    #[must_use]
    pub fn with_preconditions(
        mut self,
        preconditions: impl IntoIterator<Item = Precondition>,
    ) -> Self {
        self.preconditions.extend(preconditions);
        self
    }

    /// Sets the cause of a deletion.
    #[must_use]
    pub fn because(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }
}

impl Term {
    /// Returns the key of the current term.
    pub fn key(&self) -> String {
        keys::term(&Key::new(&self.namespace, &self.lease))
    }

    /// Parses the value of a term key.
    pub fn read(value: &[u8]) -> Option<u64> {
        std::str::from_utf8(value).ok()?.parse().ok()
    }
}
