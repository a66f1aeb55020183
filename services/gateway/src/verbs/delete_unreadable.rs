//! Deletions of objects whose stored values cannot be decrypted or decoded (upstream: the corrupt object deleter).
//!
//! A value that cannot be decrypted is not corrupt: it is readable with its key. Only a request that asks for it
//! deletes its object.

use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;
use setpoint_proto::meta::DeleteOptions;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::{self as store, Entry, Write};

use crate::registry::target;
use crate::registry::{ObjectResponse, Registry, RequestContext, Subresource, Target, errors};
use crate::verbs::delete::Deleted;
use crate::write::current::Current;

/// The field of `DeleteOptions` that asks for such a deletion.
pub(super) const OPTION: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// Returns whether the options ask for the deletion of an object that cannot be read.
pub(super) fn is_requested(options: &DeleteOptions) -> bool {
    options.ignore_store_read_error_with_cluster_breaking_potential == Some(true)
}

impl Registry {
    /// Deletes an object that cannot be decrypted or decoded: below admission, and regardless of finalizers, since they
    /// cannot be read either. The response has only the name.
    ///
    /// # Errors
    /// `Invalid` if it can be read, or does not exist.
    pub(super) async fn delete_unreadable(
        &self,
        context: &RequestContext,
        target: &Target,
    ) -> Result<Deleted, ApiError> {
        errors::check_writable(target)?;
        if target.subresource != Subresource::None {
            return Err(errors::not_allowed());
        }
        if !self.remove_unreadable(context, target, |_| true).await? {
            let mut errors = FieldErrors::default();
            let detail = "is exclusively used to delete corrupt object(s), try again by removing this option";
            errors.invalid(&FieldPath::root(OPTION), true, detail);
            errors.into_result(target.served, &target.name)?;
        }
        let mut object = errors::readable(target.served.decode(&[]))?;
        let meta = object.meta_mut();
        meta.name.clone_from(&target.name);
        meta.namespace.clone_from(&target.namespace);
        let response = ObjectResponse::not_stored(object, Default::default());
        let gone = true;
        Ok(Deleted { response, gone })
    }

    /// Deletes an object below admission, whether it can be decoded or not. Finalizers hold it only if they can be
    /// read.
    ///
    /// # Errors
    /// Those of the store; `InternalError` if it cannot be decrypted.
    pub(crate) async fn purge(
        &self,
        context: &RequestContext,
        target: &Target,
    ) -> Result<(), ApiError> {
        let options = DeleteOptions::default();
        match self.delete_admitted(context, target, &options).await {
            Err(error) if error.reason == Reason::InternalError => {
                let is_corrupt = |entry: &Entry| entry.transformed().is_ok();
                let removed = self.remove_unreadable(context, target, is_corrupt);
                let removed = removed.await?;
                removed.then_some(()).ok_or(error)
            }
            deleted => deleted.map(drop),
        }
    }

    /// Removes the key of an object that cannot be read, if `may` allows it. Returns whether it was there.
    async fn remove_unreadable(
        &self,
        context: &RequestContext,
        target: &Target,
        may: fn(&Entry) -> bool,
    ) -> Result<bool, ApiError> {
        let entry = self.store().get(&target::path(target)).await?;
        let is_unreadable = |entry: &Entry| Current::of_entry(target, entry).is_err();
        let Some(entry) = entry.filter(|entry| is_unreadable(entry) && may(entry)) else {
            return Ok(false);
        };
        let (kind, name) = (target.served.resource(), &target.name);
        let namespace = &target.namespace;
        tracing::warn!(
            kind,
            namespace,
            name,
            "deleting an object that cannot be read"
        );
        let write = Write::delete(&entry.key, entry.revision);
        let write = write.fenced(context.fence.clone()).because(context.cause());
        match self.store().commit(write).await {
            Ok(_) | Err(store::Error::Conflict { current: None }) => Ok(true),
            Err(error) => Err(self.write_error(error, target, context).await),
        }
    }
}
