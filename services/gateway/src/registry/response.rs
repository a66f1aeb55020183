//! What a verb answers: an object with its revision, encoded once and decoded only if someone asks.

use std::sync::Arc;

use bytes::Bytes;
use setpoint_codec::{Kind, Object, envelope};
use setpoint_model::Revision;
use setpoint_proto::{Any, ApiError, Cause, setpoint};
use setpoint_store::cache::Cached;

use crate::registry::errors;

/// One object, as it stands at a revision.
#[derive(Debug)]
pub struct ObjectResponse {
    /// Of which kind: the kind asked for, or `Scale`, `Status`.
    pub kind: &'static Kind,
    /// Encoded, the resourceVersion included.
    pub raw: Bytes,
    /// When it was written.
    pub revision: Revision,
    /// Why it was written.
    pub cause: Option<Cause>,
    /// What the caller should hear beside it.
    pub warnings: Vec<String>,
    object: Option<Box<dyn Object>>,
}

impl ObjectResponse {
    /// The object, decoded.
    ///
    /// # Errors
    /// `InternalError` when what is stored cannot be read.
    pub fn into_object(self) -> Result<Box<dyn Object>, ApiError> {
        match self.object {
            Some(object) => Ok(object),
            None => errors::readable(self.kind.decode(&self.raw)),
        }
    }

    /// As gRPC carries it.
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

    /// What was just written: `raw` is how it was stored, without a resourceVersion. Revision 0 is that of a dry run,
    /// whose answer has none.
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
            object: Some(object),
        }
    }

    /// What is never stored: a `Scale`, a `Status`.
    pub(crate) fn made(object: Box<dyn Object>, revision: Revision) -> Self {
        Self {
            kind: object.kind(),
            raw: object.encode(),
            revision,
            cause: None,
            warnings: Vec::new(),
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
            object: None,
        }
    }
}
