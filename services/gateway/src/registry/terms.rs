//! Terms of leases: each new holder begins one, in the very transaction that makes it the holder.
//!
//! A term is `spec.leaseTransitions` as the gateway counts it, and stands in a key of its own. That key outlives the
//! Lease: were a Lease deleted and made anew, its first holder would begin a term that nobody has ever had.

use setpoint_codec::Object;
use setpoint_model::Key;
use setpoint_proto::ApiError;
use setpoint_proto::coordination::{Lease, LeaseSpec};

use crate::store::{Store, Term, keys};

/// Counts the term of a Lease that is about to be written; nothing for other kinds, or while the holder stays.
///
/// # Errors
/// Those of the store, which is asked for the standing term when a new one begins.
pub(super) async fn advance(
    store: &dyn Store,
    old: Option<&dyn Object>,
    new: &mut dyn Object,
) -> Result<Option<Term>, ApiError> {
    let Some(new) = new.downcast_mut::<Lease>() else {
        return Ok(None);
    };
    let old = old.and_then(|old| old.downcast_ref::<Lease>());
    let old = old.map(|lease| &lease.spec);
    // Nobody counts but us: a holder that stays cannot move its own term.
    new.spec.lease_transitions = old.and_then(|old| old.lease_transitions);
    if !begins(old, &new.spec) {
        return Ok(None);
    }
    let lease = Key::of(&new.metadata);
    let stands = store.get(&keys::term(&lease)).await?;
    let from = stands.and_then(|entry| Term::read(&entry.value));
    let counted = old.and_then(|old| old.lease_transitions);
    let counted = counted.and_then(|count| u64::try_from(count).ok());
    let to = from.max(counted).map_or(0, |term| term + 1);
    new.spec.lease_transitions = Some(i32::try_from(to).unwrap_or(i32::MAX));
    Ok(Some(Term {
        namespace: lease.namespace,
        lease: lease.name,
        from,
        to,
    }))
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
