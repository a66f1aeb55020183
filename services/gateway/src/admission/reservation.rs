//! Reservations: parts of the transaction of a write that admission plugins add.
//!
//! 2026-11: we chose conditions of the write's own transaction over reservations before it (kube-apiserver's quota and
//! addresses), because nothing is left reserved by a write that fails, and any number of gateways agree. Wrong if
//! writes conflict so often on one key that a queue for it would be faster.

use setpoint_codec::Object;
use setpoint_proto::Cause;
use setpoint_store::{Precondition, Term, Write};
use tokio::sync::OwnedMutexGuard;

/// The reservation of a plugin for a write: conditions of its transaction, some of which write further keys, and locks.
///
/// Upstream reserves by writes of their own before that of the object, and what is reserved for a write that fails is
/// leaked until something repairs it. Here a plugin writes nothing: the reservation and the object are committed by one
/// transaction, or neither is, so that nothing can leak and any number of gateways agree.
#[derive(Default)]
pub(crate) struct Reservation {
    /// Keys that must be as they were read; some get another value in the same transaction.
    pub preconditions: Vec<Precondition>,
    /// The change of the term of a Lease.
    pub term: Option<Term>,
    /// The term of a Lease after the write, for the cause of the write.
    pub lease_term: Option<u64>,
    /// The object as it was requested, if the reservation has set values in it. A repeated attempt begins from it.
    pub requested: Option<Box<dyn Object>>,
    /// Held until the write has ended, so that writes of one gateway wait for each other instead of conflicting.
    pub guards: Vec<OwnedMutexGuard<()>>,
}

impl Reservation {
    /// Adds another reservation for the same write.
    pub(super) fn add(&mut self, other: Self) {
        self.preconditions.extend(other.preconditions);
        self.term = self.term.take().or(other.term);
        self.lease_term = self.lease_term.or(other.lease_term);
        self.requested = self.requested.take().or(other.requested);
        self.guards.extend(other.guards);
    }

    /// Adds the reservation to the transaction of a write.
    pub(crate) fn apply_to(&self, write: Write) -> Write {
        write
            .advancing(self.term.clone())
            .with_preconditions(self.preconditions.iter().cloned())
    }

    /// Records the term of a Lease in the cause of its write.
    pub(crate) fn record_in(&self, cause: &mut Cause) {
        cause.lease_term = self.lease_term;
    }
}

impl From<Precondition> for Reservation {
    fn from(precondition: Precondition) -> Self {
        Self {
            preconditions: vec![precondition],
            ..Self::default()
        }
    }
}
