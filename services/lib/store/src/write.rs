//! Conditional writes, as data.

use bytes::Bytes;
use prost::Message as _;
use setpoint_codec::envelope::{self, Identity};
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
    /// The identity of the write. It is a part of `value` if that is an envelope.
    pub identity: Identity,
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
        let identity = Identity(rand::random());
        let value = value.map(|value| match value.starts_with(envelope::MAGIC) {
            true => identity.append_to(&value),
            false => value,
        });
        Self {
            key,
            expect,
            value,
            fence: None,
            term: None,
            cause: None,
            preconditions: Vec::new(),
            identity,
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

    /// Returns the value of [`keys::TOMBSTONE`] that a deletion writes: its cause and its identity.
    pub(crate) fn tombstone(&self) -> Option<Bytes> {
        let cause = self.cause.as_ref().map(Cause::encode_to_vec);
        let cause = cause.unwrap_or_default();
        self.value
            .is_none()
            .then(|| self.identity.append_to(&cause))
    }

    /// Returns whether this write has put a value. Only envelopes have an identity; of other values, those of different
    /// writes must differ.
    pub(crate) fn has_put(&self, value: &Bytes) -> bool {
        let is_envelope = value.starts_with(envelope::MAGIC);
        match &self.value {
            Some(_) if is_envelope => self.identity.is_in(value),
            own => own.as_ref() == Some(value),
        }
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
