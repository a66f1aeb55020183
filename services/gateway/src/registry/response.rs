//! The response of a verb: an object, encoded once and decoded on demand.

use std::sync::Arc;

use bytes::Bytes;
use setpoint_codec::{Kind, Object, envelope};
use setpoint_kinds::{custom, versions};
use setpoint_model::Revision;
use setpoint_proto::{Any, ApiError, Cause, setpoint};
use setpoint_store::cache::Cached;

use crate::errors;

/// An object at a revision.
#[derive(Debug)]
pub struct ObjectResponse {
    /// The kind of the object: that of the request, or `Scale` or `Status`.
    pub kind: &'static Kind,
    /// The encoded object with its resourceVersion.
    pub raw: Bytes,
    /// The revision of its last write.
    pub revision: Revision,
    /// The cause of its last write.
    pub cause: Option<Cause>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Whether a request that updates has created the object.
    pub created: bool,
    object: Option<Box<dyn Object>>,
}

impl ObjectResponse {
    /// Returns the decoded object.
    ///
    /// # Errors
    /// `InternalError` when the stored object cannot be decoded.
    pub fn into_object(self) -> Result<Box<dyn Object>, ApiError> {
        match self.object {
            Some(object) => Ok(object),
            None => errors::readable(self.kind.decode(&self.raw)),
        }
    }

    /// Returns the response of a request that has created the object.
    pub(crate) fn having_created(mut self) -> Self {
        self.created = true;
        self
    }

    /// Returns the response in the form of `served`, another version of its kind; for any other kind, as it is.
    ///
    /// # Errors
    /// `InternalError` when the stored object cannot be decoded.
    pub(crate) fn served_as(self, served: &'static Kind) -> Result<Self, ApiError> {
        let is_stored = match served.is_custom() {
            true => self.kind.is_custom(),
            false => served.stored() == self.kind,
        };
        // A custom object that was read may lack defaults that its definition has got since it was written. With a
        // webhook, the conversion has set them.
        let lacks_defaults = served.is_custom() && !custom::is_converted_by_webhook(served);
        let is_complete = self.object.is_some() || !lacks_defaults;
        if !is_stored || (self.kind == served && is_complete) {
            return Ok(self);
        }
        let response = self.encoded();
        let object = versions::of_stored(self.into_object()?, served);
        Ok(response.with_object(object))
    }

    /// Returns the response with the encoded object only.
    pub(crate) fn encoded(&self) -> Self {
        Self {
            kind: self.kind,
            raw: self.raw.clone(),
            revision: self.revision,
            cause: self.cause.clone(),
            warnings: self.warnings.clone(),
            created: self.created,
            object: None,
        }
    }

    /// Returns the response with another object.
    pub(crate) fn with_object(self, object: Box<dyn Object>) -> Self {
        Self {
            kind: object.kind(),
            raw: object.encode(),
            object: Some(object),
            ..self
        }
    }

    /// Returns the gRPC message.
    pub fn into_message(self) -> setpoint::Object {
        setpoint::Object {
            object: Some(Any {
                type_url: self.kind.type_url.clone(),
                value: self.raw,
            }),
            revision: self.revision.to_string(),
            cause: self.cause,
        }
    }

    /// Returns the response of a write. `raw` is the stored object, without a resourceVersion; with revision 0, that of
    /// a dry run, the response has none either.
    pub(crate) fn written(
        mut object: Box<dyn Object>,
        raw: &Bytes,
        revision: Revision,
        cause: Option<Cause>,
    ) -> Self {
        let mut raw = raw.clone();
        if revision > Revision::default() {
            let text = revision.to_string();
            raw = envelope::with_revision(&raw, &text);
            object.meta_mut().resource_version = text;
        }
        Self {
            kind: object.kind(),
            raw,
            revision,
            cause,
            warnings: Vec::new(),
            created: false,
            object: Some(object),
        }
    }

    /// Returns the response with an object that is not stored, such as a `Scale` or a `Status`.
    pub(crate) fn not_stored(object: Box<dyn Object>, revision: Revision) -> Self {
        Self {
            kind: object.kind(),
            raw: object.encode(),
            revision,
            cause: None,
            warnings: Vec::new(),
            created: false,
            object: Some(object),
        }
    }
}

impl From<&Arc<Cached>> for ObjectResponse {
    fn from(cached: &Arc<Cached>) -> Self {
        Self {
            kind: cached.kind,
            raw: cached.raw.clone(),
            revision: cached.revision,
            cause: cached.cause(),
            warnings: Vec::new(),
            created: false,
            object: None,
        }
    }
}
