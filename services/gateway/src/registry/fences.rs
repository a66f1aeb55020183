//! Fences: writes that are refused because the lease term of their writer has passed.

use setpoint_proto::ApiError;
use setpoint_store::{self as store, Term, keys};

use super::{Call, Registry, Target, errors};
use crate::metrics;

impl Registry {
    /// Refuses a request that writes nothing, as the transaction would refuse a write: a deposed leader learns of it from a
    /// dry run, and from a change that changes nothing.
    ///
    /// # Errors
    /// `Conflict` with cause `Fenced` when the call's lease term stands no more.
    pub(super) async fn check_fence(&self, target: &Target, call: &Call) -> Result<(), ApiError> {
        let Some(fence) = &call.fence else {
            return Ok(());
        };
        let stands = self.store.get(&keys::fence(fence)).await?;
        let stands = stands.and_then(|entry| Term::read(&entry.value));
        if stands == Some(fence.term) {
            return Ok(());
        }
        Err(self.refused(store::Error::Fenced, target, call).await)
    }

    /// Returns the store's error as its caller hears it; counts the writes that fences refuse.
    pub(super) async fn refused(
        &self,
        error: store::Error,
        target: &Target,
        call: &Call,
    ) -> ApiError {
        if let (store::Error::Fenced, Some(fence)) = (&error, &call.fence) {
            // Clients name leases as they like: only one that somebody has held becomes a label.
            if let Ok(Some(_)) = self.store.get(&keys::fence(fence)).await {
                metrics::fenced(&fence.lease);
            }
        }
        errors::of_write(error, target)
    }
}
