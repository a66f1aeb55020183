//! Writes that depend on the version of an object that was observed: they fail if it has changed since.

use serde_json::json;
use setpoint_model::{Meta, Target};
use setpoint_proto::meta::{DeleteOptions, OwnerReference};
use setpoint_proto::{ApiError, Reason, Resource};

use super::{Client, Preconditions};
use crate::{Receipt, Written};

impl Client {
    /// Reads whether the object still exists with this uid and is not being deleted. The cache may lag: the object may
    /// have been deleted, or replaced by another of the same name.
    ///
    /// # Errors
    /// `Conflict` if it is being deleted or another object has its name, `NotFound` if none has.
    pub async fn ensure_alive<T: Resource>(&self, meta: &Meta) -> Result<(), ApiError> {
        let newest = self.get::<T>(&meta.key).await?;
        let newest = newest.meta();
        if newest.uid == meta.uid && newest.deletion_timestamp.is_none() {
            return Ok(());
        }
        let message = format!("{} {} with uid {} is gone", T::KIND, meta.key, meta.uid);
        Err(ApiError::new(Reason::Conflict, message))
    }

    /// Changes an object's owners, including those that a view does not keep: the object is read first, and must be the
    /// version that was observed.
    ///
    /// # Errors
    /// `Conflict` if it has changed since, `NotFound`.
    pub async fn change_owners<T: Resource>(
        &self,
        seen: &Target,
        change: impl FnOnce(&mut Vec<OwnerReference>),
    ) -> Result<Receipt, ApiError> {
        let mut object = self.get::<T>(&seen.key).await?;
        let owners = &mut object.meta_mut().owner_references;
        change(owners);
        let patch = json!({"metadata": {
            "uid": seen.uid,
            "resourceVersion": seen.revision.to_string(),
            "ownerReferences": owners,
        }});
        Ok(self.patch::<T>(&seen.key, "", patch).await?.receipt())
    }

    /// Deletes the version that was observed. Succeeds if the object is gone already.
    ///
    /// # Errors
    /// `Conflict` if it has changed since.
    pub async fn delete_unchanged<T: Resource>(&self, seen: &Target) -> Result<Receipt, ApiError> {
        let deleted = self.delete::<T>(&seen.key, unchanged(seen), None).await;
        receipt(deleted)
    }

    /// Is [`Self::delete_unchanged`] with a propagation policy: `Background` or `Foreground` for a kind whose
    /// dependants are orphaned by default.
    ///
    /// # Errors
    /// `Conflict` if it has changed since.
    pub async fn delete_unchanged_with<T: Resource>(
        &self,
        seen: &Target,
        propagation: &str,
    ) -> Result<Receipt, ApiError> {
        let options = DeleteOptions {
            preconditions: unchanged(seen).into_message(),
            propagation_policy: Some(propagation.to_owned()),
            ..DeleteOptions::default()
        };
        receipt(self.delete_with_options::<T>(&seen.key, options).await)
    }

    /// Replaces the status of the version that was observed.
    ///
    /// # Errors
    /// `Conflict` if it has changed since, `NotFound`.
    pub async fn update_status_of<T: Resource>(
        &self,
        seen: &Meta,
        status: T::Status,
    ) -> Result<Receipt, ApiError> {
        let mut object = T::default();
        *object.meta_mut() = seen.precondition();
        object.set_status(status);
        Ok(self.update_status(&object).await?.receipt())
    }
}

fn unchanged(seen: &Target) -> Preconditions {
    Preconditions {
        uid: Some(seen.uid.clone()),
        revision: Some(seen.revision),
    }
}

fn receipt<T: Resource>(deleted: Result<Written<T>, ApiError>) -> Result<Receipt, ApiError> {
    Receipt::unless_gone(deleted.map(|deleted| deleted.receipt()))
}
