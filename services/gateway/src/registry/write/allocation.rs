//! Allocation of values that are unique in the cluster, such as the addresses of Services.
//!
//! Several gateways may allocate concurrently. So each write with an allocation also writes one key, and commits only if
//! that key is unchanged since the values in use were read. Within a gateway, a lock serializes allocations.

use std::sync::Arc;
use std::time::Duration;

use setpoint_codec::Object;
use setpoint_proto::ApiError;
use setpoint_store::{self as store, Precondition};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

use crate::kinds;
use crate::registry::Registry;

/// The timeout of waiting for the lock: the time that the store may need for one write.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The lock that an allocation holds until its write has ended.
pub(crate) type AllocationLock = Arc<Mutex<()>>;
/// The guard of the lock.
pub(crate) type AllocationGuard = OwnedMutexGuard<()>;

/// An allocation whose object has not been written yet.
pub(crate) struct Allocation {
    /// The object before the allocation.
    pub requested: Box<dyn Object>,
    /// The precondition of the write: the allocated values are still free.
    pub precondition: Precondition,
    /// Held until the write has ended.
    pub _guard: AllocationGuard,
}

impl Registry {
    /// Allocates the unique values that an object needs and `old` does not have; returns `None` if there are none.
    ///
    /// # Errors
    /// `Invalid` if it requests a value of another object.
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

    /// Waits for the lock of allocations.
    ///
    /// # Errors
    /// `Timeout` if other allocations hold it too long.
    pub(crate) async fn lock_allocations(&self) -> Result<AllocationGuard, ApiError> {
        let guard = timeout(LOCK_TIMEOUT, self.allocations.clone().lock_owned()).await;
        Ok(guard.map_err(|_| store::Error::Timeout)?)
    }
}
