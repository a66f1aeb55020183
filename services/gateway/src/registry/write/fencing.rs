//! Terms of leases: each new holder begins one, in the very transaction that makes it the holder.
//!
//! A term stands in a key of its own, which goes with the Lease, and against which fences are compared. It also stands
//! beside the Lease, as `lease_term` in the cause of its last write: there an elected client learns it, from the answer to
//! its own write, and everyone else from a read, a watch, or etcd's history.
//!
//! `spec.leaseTransitions` is the users', as in Kubernetes: whatever they write is kept. We chose the envelope over an
//! annotation, which every client would see and could try to write, and over a field of the answer alone, which nobody
//! could look up afterwards. It would be wrong if something rewrote envelopes without their causes; the key stands then,
//! and the term is noted again with the next write.
//!
//! A fence may name a Lease that is gone, and must still hold when a Lease of that name is made anew: no term may ever
//! come back. So a Lease that goes leaves its last term in one key, shared by all, if that term is the highest there; and
//! a Lease without a term begins with the one after that. We chose the highest past term over a key for each name ever
//! used, of which replicas with made-up names would leave thousands.
//!
//! A key that somebody else has made unreadable counts as a term as high as its revision, than which there are fewer
//! terms, and is written anew when the next term begins.

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

/// How a write moves a Lease's term.
#[derive(Clone, Default)]
pub(crate) struct Move {
    /// The term that stands with this write; `None` if there has been none.
    stands: Option<u64>,
    term: Option<Term>,
    /// Keys that the move rests on, or repairs.
    witnesses: Vec<Precondition>,
}

impl Move {
    /// The write, with which the term moves.
    pub(crate) fn with(self, write: Write) -> Write {
        write
            .advancing(self.term)
            .with_preconditions(self.witnesses)
    }

    /// Notes the term in the cause of the write.
    pub(crate) fn note(&self, cause: &mut Cause) {
        cause.lease_term = self.stands;
    }
}

/// Counts the term of a Lease that is about to be written; nothing for other kinds, or while the holder stays.
///
/// # Errors
/// Those of the store, which is asked for the standing term when a new one begins.
pub(crate) async fn advance(
    store: &dyn Store,
    old: Option<&Current>,
    new: &dyn Object,
) -> Result<Move, ApiError> {
    let rules = kinds::of(new.kind());
    let Some(spec) = rules.lease(new) else {
        return Ok(Move::default());
    };
    let before = old.and_then(|old| rules.lease(&*old.object));
    let lease = Key::of(new.meta());
    if !begins(before, spec) {
        return continued(store, old, spec, lease).await;
    }
    let key = Stored::read(store, &keys::term(&lease)).await?;
    let mut witnesses = Vec::new();
    let mut highest = key.term().max(old.and_then(said));
    if key == Stored::Absent {
        let past = Stored::read(store, keys::PAST_TERM).await?;
        highest = highest.max(past.term());
        witnesses.push(past.stays(keys::PAST_TERM));
    }
    let to = highest.map_or(0, |term| term.saturating_add(1));
    let term = match key {
        Stored::Unreadable(_) => {
            witnesses.push(key.becomes(&keys::term(&lease), to));
            None
        }
        _ => Some(term(lease, key.term(), Some(to))),
    };
    Ok(Move {
        stands: Some(to),
        term,
        witnesses,
    })
}

/// The holder stays. A Lease that was last written before terms were noted beside it gets its note now.
async fn continued(
    store: &dyn Store,
    old: Option<&Current>,
    new: &LeaseSpec,
    lease: Key,
) -> Result<Move, ApiError> {
    let noted = old.and_then(|old| old.cause.as_ref()?.lease_term);
    let stands = match noted {
        None if !holder(new).is_empty() => Stored::read(store, &keys::term(&lease)).await?.term(),
        noted => noted,
    };
    Ok(Move {
        stands,
        ..Move::default()
    })
}

/// Forgets the term of a Lease that is about to go; nothing for other kinds.
///
/// # Errors
/// Those of the store, which is asked for the standing term.
pub(crate) async fn forget(store: &dyn Store, old: &Current) -> Result<Move, ApiError> {
    if lease_of(old).is_none() {
        return Ok(Move::default());
    }
    let lease = Key::of(old.object.meta());
    let path = keys::term(&lease);
    let key = Stored::read(store, &path).await?;
    let Some(last) = key.term().max(noted(old)) else {
        return Ok(Move::default());
    };
    if let Stored::Unreadable(_) = key {
        // It cannot be removed in this transaction: a term that nobody has had takes its place.
        return Ok(Move {
            witnesses: vec![key.becomes(&path, last.saturating_add(1))],
            ..Move::default()
        });
    }
    let past = Stored::read(store, keys::PAST_TERM).await?;
    // One that is as high already does not fall meanwhile.
    let rises = (past.term() < Some(last)).then(|| past.becomes(keys::PAST_TERM, last));
    Ok(Move {
        stands: None,
        term: key.term().map(|stands| term(lease, Some(stands), None)),
        witnesses: rises.into_iter().collect(),
    })
}

/// The term that the Lease's last write noted.
fn noted(lease: &Current) -> Option<u64> {
    lease.cause.as_ref()?.lease_term
}

/// The highest term that the Lease itself tells of. Before terms were noted beside it, `leaseTransitions` was the term.
fn said(lease: &Current) -> Option<u64> {
    let transitions = || {
        let transitions = lease_of(lease)?.lease_transitions;
        u64::try_from(transitions?).ok()
    };
    noted(lease).or_else(transitions)
}

fn lease_of(state: &Current) -> Option<&LeaseSpec> {
    kinds::of(state.object.kind()).lease(&*state.object)
}

fn term(lease: Key, from: Option<u64>, to: Option<u64>) -> Term {
    Term {
        namespace: lease.namespace,
        lease: lease.name,
        from,
        to,
    }
}

/// A key that holds a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    Absent,
    Term(u64, Revision),
    /// Somebody else has written something else there.
    Unreadable(Revision),
}

impl Stored {
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
                tracing::warn!(key, %revision, "a lease term cannot be read");
                Self::Unreadable(revision)
            }
        })
    }

    fn term(self) -> Option<u64> {
        match self {
            Self::Absent => None,
            Self::Term(term, _) => Some(term),
            Self::Unreadable(revision) => Some(revision.raw()),
        }
    }

    /// A write that rests on nobody having changed the key since.
    fn stays(self, key: &str) -> Precondition {
        Precondition {
            key: key.into(),
            expect: match self {
                Self::Absent => Expect::Absent,
                Self::Term(_, revision) | Self::Unreadable(revision) => Expect::At(revision),
            },
            put: None,
        }
    }

    /// A write that also puts another term there.
    fn becomes(self, key: &str, term: u64) -> Precondition {
        Precondition {
            put: Some(Bytes::from(term.to_string())),
            ..self.stays(key)
        }
    }
}

fn holder(spec: &LeaseSpec) -> &str {
    spec.holder_identity.as_deref().unwrap_or_default()
}

/// Does somebody hold the Lease who did not hold it before?
fn begins(old: Option<&LeaseSpec>, new: &LeaseSpec) -> bool {
    !holder(new).is_empty() && old.map(holder) != Some(holder(new))
}

impl Registry {
    /// Refuses a request that writes nothing, as the transaction would refuse a write: a deposed leader learns of it from a
    /// dry run, and from a change that changes nothing.
    ///
    /// # Errors
    /// `Conflict` with cause `Fenced` when the call's lease term stands no more.
    pub(crate) async fn check_fence(
        &self,
        target: &Target,
        context: &RequestContext,
    ) -> Result<(), ApiError> {
        let Some(fence) = &context.fence else {
            return Ok(());
        };
        let stands = self.store.get(&keys::fence(fence)).await?;
        let stands = stands.and_then(|entry| Term::read(&entry.value));
        if stands == Some(fence.term) {
            return Ok(());
        }
        Err(self.refused(store::Error::Fenced, target, context).await)
    }

    /// Returns the store's error as its caller hears it; counts the writes that fences refuse.
    pub(crate) async fn refused(
        &self,
        error: store::Error,
        target: &Target,
        context: &RequestContext,
    ) -> ApiError {
        if let (store::Error::Fenced, Some(fence)) = (&error, &context.fence) {
            // Clients name leases as they like: only one that somebody has held becomes a label.
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
    fn a_term_begins_with_a_new_holder_and_with_nothing_else() {
        assert!(begins(None, &held_by("a")));
        assert!(begins(Some(&held_by("a")), &held_by("b")));
        assert!(begins(Some(&held_by("")), &held_by("a")));
        assert!(!begins(Some(&held_by("a")), &held_by("a")));
        assert!(!begins(Some(&held_by("a")), &held_by("")));
        assert!(!begins(None, &LeaseSpec::default()));
    }
}
