//! An object as it stands, on the way to being changed.

use bytes::Bytes;
use setpoint_codec::{Object, envelope};
use setpoint_model::Revision;
use setpoint_proto::{ApiError, Cause};
use setpoint_store::Entry;

use crate::registry::{AtLeast, Registry, Target, errors};

/// What is there now, decoded, beside the bytes as they are stored.
pub(crate) struct Current {
    /// Without its resourceVersion, as it is stored.
    pub object: Box<dyn Object>,
    /// The object as it is stored.
    pub raw: Bytes,
    pub revision: Revision,
    pub cause: Option<Cause>,
    /// Is it known to be the newest, rather than hoped to be?
    pub is_live: bool,
}

impl Current {
    pub(crate) fn of_entry(target: &Target, entry: &Entry) -> Result<Self, ApiError> {
        let envelope = errors::readable(envelope::read(&entry.value))?;
        Ok(Self {
            object: errors::readable(target.kind.decode(&envelope.raw))?,
            raw: envelope.raw,
            revision: entry.revision,
            cause: envelope.cause,
            is_live: true,
        })
    }
}

impl Registry {
    /// The object as the cache has it, or else as the store has it.
    pub(crate) async fn cached(&self, target: &Target) -> Result<Current, ApiError> {
        let cached = self
            .cache
            .get(target.kind, &target.key(), AtLeast::Any)
            .await?;
        let Some(cached) = cached else {
            return self.live(target).await;
        };
        let mut object = errors::readable(cached.decode())?;
        object.meta_mut().resource_version.clear();
        Ok(Current {
            raw: object.encode(),
            object,
            revision: cached.revision,
            cause: cached.cause(),
            is_live: false,
        })
    }

    /// The object as the store has it.
    pub(crate) async fn live(&self, target: &Target) -> Result<Current, ApiError> {
        let entry = self.store.get(&target.path()).await?;
        let entry = entry.ok_or_else(|| errors::not_found(target.kind, &target.name))?;
        Current::of_entry(target, &entry)
    }
}
