//! A conditional write of one object, as data.

use std::fmt;

use bytes::Bytes;
use setpoint_model::{Key, Revision};
use setpoint_proto::Cause;

use super::keys;

/// A write of one object, and all that must hold for it to commit.
#[derive(Clone, Debug)]
pub struct Write {
    /// As in [`keys`](super::keys).
    pub key: String,
    /// How the entry must stand.
    pub expect: Expect,
    /// The new envelope; `None` deletes.
    pub value: Option<Bytes>,
    /// The lease term that must stand.
    pub fence: Option<Fence>,
    /// The lease term that begins or is forgotten with this write.
    pub term: Option<Term>,
    /// Why it is deleted. The cause of a put stands in its envelope.
    pub cause: Option<Cause>,
    /// What else must stand as it was seen.
    pub witnesses: Vec<Witness>,
}

/// Another entry that must stand as it was seen for a write to commit: what the writer decided rests on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Whose it is.
    pub key: String,
    /// How it was seen.
    pub expect: Expect,
    /// What the same transaction writes there, if anything: then of several writes that have seen it so, one commits.
    pub put: Option<Bytes>,
}

/// How the entry must stand for a write to commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// There is none.
    Absent,
    /// Its last write was this one.
    At(Revision),
}

/// The right to write, as long as a term of a lease stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    /// Of the Lease.
    pub namespace: String,
    /// The Lease's name.
    pub lease: String,
    /// Grows with each new holder.
    pub term: u64,
}

/// The beginning of a lease's term, or the end of the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Of the Lease.
    pub namespace: String,
    /// The Lease's name.
    pub lease: String,
    /// The term that stands now; `None`: there has been none.
    pub from: Option<u64>,
    /// The term that stands from here on; `None`: it is forgotten with its Lease, and every fence that names it holds.
    pub to: Option<u64>,
}

impl Write {
    /// A new object.
    pub fn create(key: impl Into<String>, value: Bytes) -> Self {
        Self::new(key.into(), Expect::Absent, Some(value))
    }

    /// A change of the object as it was written at `revision`.
    pub fn update(key: impl Into<String>, revision: Revision, value: Bytes) -> Self {
        Self::new(key.into(), Expect::At(revision), Some(value))
    }

    /// The end of the object as it was written at `revision`.
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
            witnesses: Vec::new(),
        }
    }

    /// The same write, only while that lease term stands.
    #[must_use]
    pub fn fenced(mut self, fence: Option<Fence>) -> Self {
        self.fence = fence;
        self
    }

    /// The same write, with which a lease term begins or is forgotten.
    #[must_use]
    pub fn advancing(mut self, term: Option<Term>) -> Self {
        self.term = term;
        self
    }

    /// The same write, only while these stand too.
    #[must_use]
    pub fn relying(mut self, witnesses: impl IntoIterator<Item = Witness>) -> Self {
        self.witnesses.extend(witnesses);
        self
    }

    /// The same deletion, for this reason.
    #[must_use]
    pub fn because(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }
}

impl Fence {
    /// Where the standing term is kept.
    pub fn key(&self) -> String {
        keys::term(&Key::new(&self.namespace, &self.lease))
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.namespace, self.lease, self.term)
    }
}

impl Term {
    /// Where the standing term is kept.
    pub fn key(&self) -> String {
        keys::term(&Key::new(&self.namespace, &self.lease))
    }

    /// The term that a term key's value tells.
    pub fn read(value: &[u8]) -> Option<u64> {
        std::str::from_utf8(value).ok()?.parse().ok()
    }
}
