//! Fences: a write that names a lease term commits only while that term is current (see
//! `admission::plugins::lease_term`).

use setpoint_proto::ApiError;
use setpoint_store::{self as store, Term, keys};

use crate::metrics;
use crate::registry::{Registry, RequestContext, Target, errors};

impl Registry {
    /// Checks the fence of a request that writes nothing, such as a dry run or an update without a change, so that a
    /// deposed leader learns from it as from a write.
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
        let current = self.store().get(&keys::fence(fence)).await?;
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
            if let Ok(Some(_)) = self.store().get(&keys::fence(fence)).await {
                metrics::fenced(&fence.lease);
            }
        }
        errors::of_write(error, target)
    }
}
