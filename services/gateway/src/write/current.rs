//! The current object, as a write reads it.

use bytes::Bytes;
use setpoint_codec::{Object, envelope};
use setpoint_model::Revision;
use setpoint_proto::{ApiError, Cause};
use setpoint_store::{Entry, Form};

use crate::registry::target;
use crate::registry::{AtLeast, Registry, Target, errors};

/// The current object, decoded and encoded.
pub(crate) struct Current {
    /// The object without its resourceVersion, as it is stored.
    pub object: Box<dyn Object>,
    /// The same, encoded.
    pub raw: Bytes,
    pub revision: Revision,
    pub cause: Option<Cause>,
    /// Whether it was read from the store. One from the cache may be stale.
    pub is_live: bool,
    /// Whether the store has it in another form than it would have now, such as encrypted by another key. Not known of
    /// one from the cache.
    pub is_in_old_form: bool,
}

impl Current {
    pub(crate) fn of_entry(target: &Target, entry: &Entry) -> Result<Self, ApiError> {
        let envelope = errors::readable(envelope::read(entry.transformed()?))?;
        Ok(Self {
            object: errors::readable(target.kind.decode(&envelope.raw))?,
            raw: envelope.raw,
            revision: entry.revision,
            cause: envelope.cause,
            is_live: true,
            is_in_old_form: entry.form == Form::Stale,
        })
    }

    /// Returns the encoding of the object, which may be of another version than the stored one.
    pub(crate) fn encoding(&self) -> Bytes {
        match self.object.kind().is_custom() {
            true => self.object.encode(),
            false => self.raw.clone(),
        }
    }
}

impl Registry {
    /// Returns the object from the cache; if it is not there, from the store.
    pub(crate) async fn cached(&self, target: &Target) -> Result<Current, ApiError> {
        let cached = self
            .cache()
            .get(target.kind, &target.key(), AtLeast::Any)
            .await?;
        let Some(cached) = cached else {
            return self.live(target).await;
        };
        let raw = cached.stored();
        Ok(Current {
            object: errors::readable(cached.kind.decode(&raw))?,
            raw,
            revision: cached.revision,
            cause: cached.cause(),
            is_live: false,
            is_in_old_form: false,
        })
    }

    /// Returns the object from the store.
    pub(crate) async fn live(&self, target: &Target) -> Result<Current, ApiError> {
        let entry = self.store().get(&target::path(target)).await?;
        let entry = entry.ok_or_else(|| errors::not_found(target.served, &target.name))?;
        Current::of_entry(target, &entry)
    }
}
