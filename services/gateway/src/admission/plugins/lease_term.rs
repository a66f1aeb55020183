//! Terms of Leases. Each new holder begins a term, in the transaction that makes it the holder.
//!
//! The current term is in a key of its own, which is deleted with the Lease, and with which fences are compared. It is
//! also in the cause of the last write of the Lease (`lease_term`): an elected client learns it from the response to
//! its write, and others from a read, a watch, or etcd's history.
//!
//! `spec.leaseTransitions` belongs to users, as in Kubernetes. 2026-11: we chose the envelope over an annotation, which
//! every client would see and could try to write, and over a field of the response alone, which could not be looked up
//! later. It would be wrong if something rewrote envelopes without their causes; the key would still be right, and the
//! next write records the term again.
//!
//! A fence may name a Lease that has been deleted, and must also fail if a Lease of that name is created again, so a
//! term must never be reused. A deleted Lease leaves its last term in one key, shared by all Leases, if it is the
//! highest there; a Lease without a term begins with the one after that. 2026-11: we chose the highest past term over a
//! key for each name ever used, since replicas with generated names would leave thousands.
//!
//! A term key with an invalid value counts as a term as high as its revision, which no term exceeds, and is repaired
//! when the next term begins.

use bytes::Bytes;
use setpoint_codec::Object;
use setpoint_model::{Key, Revision};
use setpoint_proto::coordination::{Lease, LeaseSpec};
use setpoint_proto::{ApiError, Cause};
use setpoint_store::cache::AtLeast;
use setpoint_store::{Entry, Expect, Precondition, Term, keys};

use super::{Plugin, Reserving};
use crate::admission::{Attributes, Reader, Reservation};

/// The plugin.
pub(super) struct LeaseTerm;

impl Plugin for LeaseTerm {
    fn reserve<'a>(
        &'a self,
        request: Attributes<'a>,
        object: &'a mut dyn Object,
        _at: AtLeast,
        reader: &'a dyn Reader,
    ) -> Option<Reserving<'a>> {
        let new = object.downcast_ref::<Lease>()?;
        Some(Box::pin(advance(Old::of(&request), new, reader)))
    }

    fn release<'a>(
        &'a self,
        request: Attributes<'a>,
        reader: &'a dyn Reader,
    ) -> Option<Reserving<'a>> {
        let old = Old::of(&request)?;
        Some(Box::pin(async move { end_term(old, reader).await }))
    }
}

/// A Lease before a write.
#[derive(Clone, Copy)]
struct Old<'a> {
    lease: &'a Lease,
    /// The cause of its last write.
    cause: Option<&'a Cause>,
}

impl<'a> Old<'a> {
    fn of(request: &Attributes<'a>) -> Option<Self> {
        let lease = request.old?.downcast_ref()?;
        let cause = request.old_cause;
        Some(Self { lease, cause })
    }

    /// Returns the term that the last write recorded.
    fn recorded_term(&self) -> Option<u64> {
        self.cause?.lease_term
    }

    /// Returns the term without its key. Before terms were recorded, `leaseTransitions` was the term.
    fn term(&self) -> Option<u64> {
        let transitions = || {
            let transitions = self.lease.spec.lease_transitions;
            u64::try_from(transitions?).ok()
        };
        self.recorded_term().or_else(transitions)
    }
}

/// Begins a term if the write of a Lease sets a new holder; otherwise changes nothing.
///
/// # Errors
/// Those of the reader, from which the current term is read.
async fn advance(
    old: Option<Old<'_>>,
    new: &Lease,
    reader: &dyn Reader,
) -> Result<Reservation, ApiError> {
    let before = old.map(|old| &old.lease.spec);
    let lease = Key::of(&new.metadata);
    if !is_new_holder(before, &new.spec) {
        return keep_term(old, &new.spec, lease, reader).await;
    }
    let path = keys::term(&lease);
    let key = TermKey::read(&path, reader).await?;
    let mut preconditions = Vec::new();
    let mut highest = key.term().max(old.and_then(|old| old.term()));
    if key == TermKey::Absent {
        let past = TermKey::read(keys::PAST_TERM, reader).await?;
        highest = highest.max(past.term());
        preconditions.push(past.unchanged(keys::PAST_TERM));
    }
    let next = highest.map_or(0, |term| term.saturating_add(1));
    let term = match key {
        TermKey::Invalid(_) => {
            preconditions.push(key.replaced(&path, next));
            None
        }
        _ => Some(change(lease, key.term(), Some(next))),
    };
    Ok(Reservation {
        preconditions,
        term,
        lease_term: Some(next),
        ..Reservation::default()
    })
}

/// Records the current term again. It is read from its key if the last write was made before terms were recorded.
async fn keep_term(
    old: Option<Old<'_>>,
    new: &LeaseSpec,
    lease: Key,
    reader: &dyn Reader,
) -> Result<Reservation, ApiError> {
    let lease_term = match old.and_then(|old| old.recorded_term()) {
        None if !holder(new).is_empty() => TermKey::read(&keys::term(&lease), reader).await?.term(),
        recorded => recorded,
    };
    Ok(Reservation {
        lease_term,
        ..Reservation::default()
    })
}

/// Ends the term of a Lease that is removed.
///
/// # Errors
/// Those of the reader, from which the current term is read.
async fn end_term(old: Old<'_>, reader: &dyn Reader) -> Result<Reservation, ApiError> {
    let lease = Key::of(&old.lease.metadata);
    let path = keys::term(&lease);
    let key = TermKey::read(&path, reader).await?;
    let Some(last) = key.term().max(old.recorded_term()) else {
        return Ok(Reservation::default());
    };
    if let TermKey::Invalid(_) = key {
        // It cannot be deleted in this transaction, so it gets a term that has never been in use.
        return Ok(key.replaced(&path, last.saturating_add(1)).into());
    }
    let past = TermKey::read(keys::PAST_TERM, reader).await?;
    // A past term that is as high needs no precondition, since it only rises.
    let raised = (past.term() < Some(last)).then(|| past.replaced(keys::PAST_TERM, last));
    Ok(Reservation {
        preconditions: raised.into_iter().collect(),
        term: key.term().map(|term| change(lease, Some(term), None)),
        ..Reservation::default()
    })
}

fn change(lease: Key, from: Option<u64>, to: Option<u64>) -> Term {
    Term {
        namespace: lease.namespace,
        lease: lease.name,
        from,
        to,
    }
}

/// The state of a key that holds a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TermKey {
    Absent,
    Term(u64, Revision),
    /// The value is not a term: something else has written it.
    Invalid(Revision),
}

impl TermKey {
    async fn read(key: &str, reader: &dyn Reader) -> Result<Self, ApiError> {
        let Some(Entry {
            value, revision, ..
        }) = reader.newest(key).await?
        else {
            return Ok(Self::Absent);
        };
        Ok(match Term::read(&value) {
            Some(term) => Self::Term(term, revision),
            None => {
                tracing::warn!(key, %revision, "the value of a lease term key is invalid");
                Self::Invalid(revision)
            }
        })
    }

    fn term(self) -> Option<u64> {
        match self {
            Self::Absent => None,
            Self::Term(term, _) => Some(term),
            Self::Invalid(revision) => Some(revision.raw()),
        }
    }

    /// Returns the precondition that the key is unchanged.
    fn unchanged(self, key: &str) -> Precondition {
        Precondition {
            key: key.into(),
            expect: match self {
                Self::Absent => Expect::Absent,
                Self::Term(_, revision) | Self::Invalid(revision) => Expect::At(revision),
            },
            put: None,
        }
    }

    /// Returns the precondition that the key is unchanged, and writes another term to it.
    fn replaced(self, key: &str, term: u64) -> Precondition {
        Precondition {
            put: Some(Bytes::from(term.to_string())),
            ..self.unchanged(key)
        }
    }
}

fn holder(spec: &LeaseSpec) -> &str {
    spec.holder_identity.as_deref().unwrap_or_default()
}

/// Returns whether the Lease has a holder that did not hold it before.
fn is_new_holder(old: Option<&LeaseSpec>, new: &LeaseSpec) -> bool {
    !holder(new).is_empty() && old.map(holder) != Some(holder(new))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_by(holder: &str) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.into()),
            ..Default::default()
        }
    }

    #[test]
    fn only_a_new_holder_begins_a_term() {
        assert!(is_new_holder(None, &held_by("a")));
        assert!(is_new_holder(Some(&held_by("a")), &held_by("b")));
        assert!(is_new_holder(Some(&held_by("")), &held_by("a")));
        assert!(!is_new_holder(Some(&held_by("a")), &held_by("a")));
        assert!(!is_new_holder(Some(&held_by("a")), &held_by("")));
        assert!(!is_new_holder(None, &LeaseSpec::default()));
    }
}
