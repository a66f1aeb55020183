//! Terms of leases: each new holder begins one, in the very transaction that makes it the holder.
//!
//! A term is `spec.leaseTransitions` as the gateway counts it, and stands in a key of its own, which goes with the Lease.
//! A fence may name a Lease that is gone, and must still hold when a Lease of that name is made anew: no term may ever
//! come back. So a Lease that goes leaves its last term in one key, shared by all, if that term is the highest there; and
//! a Lease without a term begins with the one after that.
//!
//! We chose the highest past term over a key for each name ever used, of which replicas with made-up names would leave
//! thousands, and over etcd's revision, which does not fit in `leaseTransitions` (32 bits) for long. It would be wrong if
//! Leases came and went two thousand million times.

use setpoint_codec::Object;
use setpoint_model::Key;
use setpoint_proto::ApiError;
use setpoint_proto::coordination::{Lease, LeaseSpec};

use crate::store::{Expect, Store, Term, Witness, Write, keys};

/// How a write moves a Lease's term.
#[derive(Clone, Default)]
pub(super) struct Move {
    term: Option<Term>,
    /// The highest past term, if the move rests on it.
    past: Option<Witness>,
}

impl Move {
    /// The write, with which the term moves.
    pub(super) fn with(self, write: Write) -> Write {
        write.advancing(self.term).relying(self.past)
    }
}

/// Counts the term of a Lease that is about to be written; nothing for other kinds, or while the holder stays.
///
/// # Errors
/// Those of the store, which is asked for the standing term when a new one begins.
pub(super) async fn advance(
    store: &dyn Store,
    old: Option<&dyn Object>,
    new: &mut dyn Object,
) -> Result<Move, ApiError> {
    let Some(new) = new.downcast_mut::<Lease>() else {
        return Ok(Move::default());
    };
    let old = old.and_then(|old| old.downcast_ref::<Lease>());
    let old = old.map(|lease| &lease.spec);
    // Nobody counts but us: a holder that stays cannot move its own term.
    new.spec.lease_transitions = old.and_then(|old| old.lease_transitions);
    if !begins(old, &new.spec) {
        return Ok(Move::default());
    }
    let lease = Key::of(&new.metadata);
    let from = standing(store, &lease).await?;
    let past = match from {
        Some(_) => None,
        None => Some(Past::read(store).await?),
    };
    let counted = old.and_then(|old| old.lease_transitions);
    let counted = counted.and_then(|count| u64::try_from(count).ok());
    let highest = past.as_ref().and_then(|past| past.term);
    let to = from.max(counted).max(highest).map_or(0, |term| term + 1);
    new.spec.lease_transitions = Some(i32::try_from(to).unwrap_or(i32::MAX));
    Ok(Move {
        term: Some(term(lease, from, Some(to))),
        past: past.map(|past| past.stays()),
    })
}

/// Forgets the term of a Lease that is about to go; nothing for other kinds.
///
/// # Errors
/// Those of the store, which is asked for the standing term.
pub(super) async fn forget(store: &dyn Store, old: &dyn Object) -> Result<Move, ApiError> {
    let Some(old) = old.downcast_ref::<Lease>() else {
        return Ok(Move::default());
    };
    let lease = Key::of(&old.metadata);
    let Some(last) = standing(store, &lease).await? else {
        return Ok(Move::default());
    };
    let past = Past::read(store).await?;
    Ok(Move {
        term: Some(term(lease, Some(last), None)),
        // One that is as high already does not fall meanwhile.
        past: (past.term < Some(last)).then(|| past.rises(last)),
    })
}

async fn standing(store: &dyn Store, lease: &Key) -> Result<Option<u64>, ApiError> {
    let entry = store.get(&keys::term(lease)).await?;
    Ok(entry.and_then(|entry| Term::read(&entry.value)))
}

fn term(lease: Key, from: Option<u64>, to: Option<u64>) -> Term {
    Term {
        namespace: lease.namespace,
        lease: lease.name,
        from,
        to,
    }
}

/// The highest term of any Lease that is gone.
struct Past {
    term: Option<u64>,
    seen: Expect,
}

impl Past {
    async fn read(store: &dyn Store) -> Result<Self, ApiError> {
        let entry = store.get(keys::PAST_TERM).await?;
        Ok(Self {
            term: entry.as_ref().and_then(|entry| Term::read(&entry.value)),
            seen: entry.map_or(Expect::Absent, |entry| Expect::At(entry.revision)),
        })
    }

    /// A write that rests on no Lease with a higher term having gone since.
    fn stays(&self) -> Witness {
        Witness {
            key: keys::PAST_TERM.into(),
            expect: self.seen,
            put: None,
        }
    }

    /// A write with which a higher term is gone.
    fn rises(&self, to: u64) -> Witness {
        Witness {
            put: Some(to.to_string().into()),
            ..self.stays()
        }
    }
}

/// Does somebody hold the Lease who did not hold it before?
fn begins(old: Option<&LeaseSpec>, new: &LeaseSpec) -> bool {
    let holder = |spec: &LeaseSpec| spec.holder_identity.clone().unwrap_or_default();
    let now = holder(new);
    !now.is_empty() && old.map(holder).as_deref() != Some(&now)
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
