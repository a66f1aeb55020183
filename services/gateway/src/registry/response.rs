//! The response of a verb: an object, encoded once and decoded on demand.

use std::sync::Arc;

use bytes::Bytes;
use setpoint_codec::{Kind, Object, envelope};
use setpoint_model::Revision;
use setpoint_proto::{Any, ApiError, Cause, setpoint};
use setpoint_store::cache::Cached;

use crate::kinds::{self, view};
use crate::registry::errors;

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

    /// Returns the response of a write, with the warnings of the kind about the object.
    ///
    /// # Errors
    /// `InternalError` when the stored object cannot be decoded.
    pub(crate) fn of_write(mut self) -> Result<Self, ApiError> {
        let object = match self.object.take() {
            Some(object) => object,
            None => errors::readable(self.kind.decode(&self.raw))?,
        };
        self.warnings
            .extend(kinds::of(self.kind).warnings(&*object));
        self.object = Some(object);
        Ok(self)
    }

    /// Returns the response in the form of `served`, a view of its kind; for any other kind, as it is.
    ///
    /// # Errors
    /// `InternalError` when the stored object cannot be decoded.
    pub(crate) fn served_as(self, served: &'static Kind) -> Result<Self, ApiError> {
        if served.stored() == served || served.stored() != self.kind {
            return Ok(self);
        }
        let (revision, cause, warnings) =
            (self.revision, self.cause.clone(), self.warnings.clone());
        let created = self.created;
        let object = view::of_stored(self.into_object()?, served);
        Ok(Self {
            kind: served,
            raw: object.encode(),
            revision,
            cause,
            warnings,
            created,
            object: Some(object),
        })
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

    /// Returns the response of a write. `raw` is the stored object, without a resourceVersion; with revision 0, that of a
    /// dry run, the response has none either.
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
