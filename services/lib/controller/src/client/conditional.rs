//! Writes about an object as it was seen: they fail, or do nothing, if it has become another one since.

use serde_json::json;
use setpoint_model::{Meta, Target};
use setpoint_proto::meta::OwnerReference;
use setpoint_proto::{ApiError, Reason, Resource};

use super::{Client, Preconditions};
use crate::Receipt;

impl Client {
    /// Asks whether the object is still there and not being deleted: the cache may be older than its deletion, and one
    /// of the same name would not want to adopt what this one wanted.
    ///
    /// # Errors
    /// `Conflict` when it is on its way out or another object has its name, `NotFound` when nobody has.
    pub async fn ensure_alive<T: Resource>(&self, meta: &Meta) -> Result<(), ApiError> {
        let newest = self.get::<T>(&meta.key).await?;
        let newest = newest.meta();
        if newest.uid == meta.uid && newest.deletion_timestamp.is_none() {
            return Ok(());
        }
        let message = format!("{} {} with uid {} is gone", T::KIND, meta.key, meta.uid);
        Err(ApiError::new(Reason::Conflict, message))
    }

    /// Changes an object's owners. Those that a view does not keep stay as they are: the object is read first, and must
    /// be the version that was seen.
    ///
    /// # Errors
    /// `Conflict` when it has changed since, `NotFound`.
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

    /// Deletes the very version that was seen; one that is gone already is as good.
    ///
    /// # Errors
    /// `Conflict` when it has changed since.
    pub async fn delete_unchanged<T: Resource>(&self, seen: &Target) -> Result<Receipt, ApiError> {
        let unchanged = Preconditions {
            uid: Some(seen.uid.clone()),
            revision: Some(seen.revision),
        };
        match self.delete::<T>(&seen.key, unchanged, None).await {
            Err(error) if error.reason == Reason::NotFound => Ok(Receipt::none()),
            deleted => Ok(deleted?.receipt()),
        }
    }
}
