//! Terms of Leases. Each new holder begins a term, in the transaction that makes it the holder.
//!
//! The current term is in a key of its own, which is deleted with the Lease, and with which fences are compared. It is also
//! in the cause of the last write of the Lease (`lease_term`): an elected client learns it from the response to its write,
//! and others from a read, a watch, or etcd's history.
//!
//! `spec.leaseTransitions` belongs to users, as in Kubernetes. We chose the envelope over an annotation, which every client
//! would see and could try to write, and over a field of the response alone, which could not be looked up later. It would be
//! wrong if something rewrote envelopes without their causes; the key would still be right, and the next write records the
//! term again.
//!
//! A fence may name a Lease that has been deleted, and must also fail if a Lease of that name is created again, so a term
//! must never be reused. A deleted Lease leaves its last term in one key, shared by all Leases, if it is the highest there;
//! a Lease without a term begins with the one after that. We chose the highest past term over a key for each name ever
//! used, since replicas with generated names would leave thousands.
//!
//! A term key with an invalid value counts as a term as high as its revision, which no term exceeds, and is repaired when
//! the next term begins.

use bytes::Bytes;
use setpoint_codec::Object;
use setpoint_model::{Key, Revision};
use setpoint_proto::coordination::LeaseSpec;
use setpoint_proto::{ApiError, Cause};
use setpoint_store::{self as store, Entry, Expect, Precondition, Store, Term, Write, keys};

use crate::kinds;
use crate::metrics;
use crate::registry::write::current::Current;
use crate::registry::{Registry, RequestContext, Target, errors};

/// The effect of a write on the term of a Lease.
#[derive(Clone, Default)]
pub(crate) struct TermChange {
    /// The term after the write; `None` if there is none.
    term: Option<u64>,
    /// The change of the term key.
    change: Option<Term>,
    /// Term keys that must be unchanged, or are repaired.
    preconditions: Vec<Precondition>,
}

impl TermChange {
    /// Adds the change to a write.
    pub(crate) fn apply_to(self, write: Write) -> Write {
        write
            .advancing(self.change)
            .with_preconditions(self.preconditions)
    }

    /// Records the term in the cause of the write.
    pub(crate) fn record_in(&self, cause: &mut Cause) {
        cause.lease_term = self.term;
    }
}

/// Begins a term if the write of a Lease sets a new holder; otherwise, and for other kinds, changes nothing.
///
/// # Errors
/// Those of the store, from which the current term is read.
pub(crate) async fn advance(
    store: &dyn Store,
    old: Option<&Current>,
    new: &dyn Object,
) -> Result<TermChange, ApiError> {
    let rules = kinds::of(new.kind());
    let Some(spec) = rules.lease(new) else {
        return Ok(TermChange::default());
    };
    let before = old.and_then(|old| rules.lease(&*old.object));
    let lease = Key::of(new.meta());
    if !is_new_holder(before, spec) {
        return keep_term(store, old, spec, lease).await;
    }
    let path = keys::term(&lease);
    let key = TermKey::read(store, &path).await?;
    let mut preconditions = Vec::new();
    let mut highest = key.term().max(old.and_then(term_in_lease));
    if key == TermKey::Absent {
        let past = TermKey::read(store, keys::PAST_TERM).await?;
        highest = highest.max(past.term());
        preconditions.push(past.unchanged(keys::PAST_TERM));
    }
    let next = highest.map_or(0, |term| term.saturating_add(1));
    let change = match key {
        TermKey::Invalid(_) => {
            preconditions.push(key.replaced(&path, next));
            None
        }
        _ => Some(change(lease, key.term(), Some(next))),
    };
    Ok(TermChange {
        term: Some(next),
        change,
        preconditions,
    })
}

/// Records the current term again. It is read from its key if the last write was made before terms were recorded.
async fn keep_term(
    store: &dyn Store,
    old: Option<&Current>,
    new: &LeaseSpec,
    lease: Key,
) -> Result<TermChange, ApiError> {
    let term = match old.and_then(recorded_term) {
        None if !holder(new).is_empty() => TermKey::read(store, &keys::term(&lease)).await?.term(),
        recorded => recorded,
    };
    Ok(TermChange {
        term,
        ..TermChange::default()
    })
}

/// Ends the term of a Lease that is removed; changes nothing for other kinds.
///
/// # Errors
/// Those of the store, from which the current term is read.
pub(crate) async fn end_term(store: &dyn Store, old: &Current) -> Result<TermChange, ApiError> {
    if lease_of(old).is_none() {
        return Ok(TermChange::default());
    }
    let lease = Key::of(old.object.meta());
    let path = keys::term(&lease);
    let key = TermKey::read(store, &path).await?;
    let Some(last) = key.term().max(recorded_term(old)) else {
        return Ok(TermChange::default());
    };
    if let TermKey::Invalid(_) = key {
        // It cannot be deleted in this transaction, so it gets a term that has never been in use.
        return Ok(TermChange {
            preconditions: vec![key.replaced(&path, last.saturating_add(1))],
            ..TermChange::default()
        });
    }
    let past = TermKey::read(store, keys::PAST_TERM).await?;
    // A past term that is as high needs no precondition, since it only rises.
    let raised = (past.term() < Some(last)).then(|| past.replaced(keys::PAST_TERM, last));
    Ok(TermChange {
        term: None,
        change: key.term().map(|term| change(lease, Some(term), None)),
        preconditions: raised.into_iter().collect(),
    })
}

/// Returns the term that the last write of the Lease recorded.
fn recorded_term(lease: &Current) -> Option<u64> {
    lease.cause.as_ref()?.lease_term
}

/// Returns the term of a Lease without its key. Before terms were recorded, `leaseTransitions` was the term.
fn term_in_lease(lease: &Current) -> Option<u64> {
    let transitions = || {
        let transitions = lease_of(lease)?.lease_transitions;
        u64::try_from(transitions?).ok()
    };
    recorded_term(lease).or_else(transitions)
}

fn lease_of(current: &Current) -> Option<&LeaseSpec> {
    kinds::of(current.object.kind()).lease(&*current.object)
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
    async fn read(store: &dyn Store, key: &str) -> Result<Self, ApiError> {
        let Some(Entry {
            value, revision, ..
        }) = store.get(key).await?
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

impl Registry {
    /// Checks the fence of a request that writes nothing, such as a dry run or an update without a change, so that a deposed
    /// leader learns from it as from a write.
    ///
    /// # Errors
    /// `Conflict` with cause `Fenced` when the lease term of the request is over.
    pub(crate) async fn check_fence(
        &self,
        target: &Target,
        context: &RequestContext,
    ) -> Result<(), ApiError> {
        let Some(fence) = &context.fence else {
            return Ok(());
        };
        let current = self.store.get(&keys::fence(fence)).await?;
        let current = current.and_then(|entry| Term::read(&entry.value));
        if current == Some(fence.term) {
            return Ok(());
        }
        let error = store::Error::Fenced;
        Err(self.write_error(error, target, context).await)
    }

    /// Converts the store's error of a write, and counts writes that fences reject.
    pub(crate) async fn write_error(
        &self,
        error: store::Error,
        target: &Target,
        context: &RequestContext,
    ) -> ApiError {
        if let (store::Error::Fenced, Some(fence)) = (&error, &context.fence) {
            // Clients choose the names of leases freely, so only one that has a term becomes a label.
            if let Ok(Some(_)) = self.store.get(&keys::fence(fence)).await {
                metrics::fenced(&fence.lease);
            }
        }
        errors::of_write(error, target)
    }
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
