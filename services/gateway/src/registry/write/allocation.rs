//! Allocation of values that are unique in the cluster, such as the addresses of Services.
//!
//! Several gateways may allocate at once. So each write of an allocation rewrites one key, and commits only if nobody has
//! rewritten that key since the values in use were looked up. Within a gateway, allocations take turns.

use std::sync::Arc;
use std::time::Duration;

use setpoint_codec::Object;
use setpoint_proto::ApiError;
use setpoint_store::{self as store, Precondition};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

use crate::kinds;
use crate::registry::Registry;

/// The longest wait for a turn: the time that the store may need for one write.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The lock that an allocation holds until its write has ended.
pub(crate) type Turns = Arc<Mutex<()>>;
/// A lock that is held.
pub(crate) type Turn = OwnedMutexGuard<()>;

/// Allocated values, while the write of their object is under way.
pub(crate) struct Allocation {
    /// The object before the allocation.
    pub asked: Box<dyn Object>,
    /// The condition under which the values are still free.
    pub precondition: Precondition,
    _turn: Turn,
}

impl Allocation {
    /// Returns an allocation that is valid under a precondition, and keeps the turn.
    pub(crate) fn new(asked: Box<dyn Object>, precondition: Precondition, turn: Turn) -> Self {
        Self {
            asked,
            precondition,
            _turn: turn,
        }
    }
}

/// Returns the precondition of a write with this allocation.
pub(crate) fn precondition(allocation: &Option<Allocation>) -> Option<Precondition> {
    let allocation = allocation.as_ref()?;
    Some(allocation.precondition.clone())
}

impl Registry {
    /// Allocates the values that an object needs and `old` does not have; returns `None` if there are none.
    ///
    /// # Errors
    /// `Invalid` if it asks for a value of another object.
    pub(crate) async fn allocate(
        &self,
        old: Option<&dyn Object>,
        new: &mut dyn Object,
    ) -> Result<Option<Allocation>, ApiError> {
        match kinds::of(new.kind()).allocate(new, old, self) {
            Some(allocating) => allocating.await,
            None => Ok(None),
        }
    }

    /// Waits for the turn to allocate.
    ///
    /// # Errors
    /// `Timeout` if the others take too long.
    pub(crate) async fn turn(&self) -> Result<Turn, ApiError> {
        let turn = timeout(LONGEST_WAIT, self.allocations.clone().lock_owned()).await;
        Ok(turn.map_err(|_| store::Error::Timeout)?)
    }
}
