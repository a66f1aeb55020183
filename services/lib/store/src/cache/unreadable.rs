//! Stored values that cannot be decrypted or decoded, and the errors of reads that meet them, in Kubernetes' wording.

use bytes::Bytes;
use setpoint_codec::{Kind, envelope};
use setpoint_model::{Key, Revision};
use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, NOT_TRANSFORMABLE, Reason, StatusOverride};

use crate::{Entry, Form, keys};

/// The largest number of values that the error of a list names, as upstream.
const MAX_CAUSES: usize = 100;

/// A value that cannot be decrypted or decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Namespace and name of the object.
    pub key: Key,
    /// The revision of its last write.
    pub revision: Revision,
    /// The reason, in upstream's words.
    pub(super) why: String,
}

impl Unreadable {
    fn message(&self, kind: &Kind) -> String {
        message(&keys::object(kind, &self.key), &self.why)
    }

    /// Returns the error of a read of this object.
    pub(super) fn error(&self, kind: &Kind) -> ApiError {
        internal(self.message(kind))
    }
}

impl Entry {
    /// Returns the value, in plain text.
    ///
    /// # Errors
    /// `InternalError` if it could not be decrypted. The object exists, and may be readable again: nobody may take that
    /// for a value that is corrupt.
    pub fn transformed(&self) -> Result<&Bytes, ApiError> {
        match &self.form {
            Form::Untransformable(why) => {
                let why = untransformable(self.revision, why);
                Err(internal(message(&self.key, &why)))
            }
            Form::Current | Form::Stale => Ok(&self.value),
        }
    }
}

/// Returns why a value cannot be read that could not be decrypted.
pub(super) fn untransformable(revision: Revision, why: &str) -> String {
    format!("{NOT_TRANSFORMABLE} revision={revision}: {why}")
}

/// Returns why a value cannot be read that could not be decoded.
pub(super) fn undecodable(revision: Revision, why: &envelope::Error) -> String {
    format!("object not decodable revision={revision}: {why}")
}

fn message(path: &str, why: &str) -> String {
    format!(
        "StorageError: corrupt object, Code: 7, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
    )
}

fn internal(message: String) -> ApiError {
    let error = ApiError::new(
        Reason::InternalError,
        format!("Internal error occurred: {message}"),
    );
    error.with_details(StatusDetails {
        causes: vec![StatusCause {
            message,
            ..Default::default()
        }],
        ..Default::default()
    })
}

/// Returns the error of a list of objects some of which cannot be decoded. The reason of its `Status` is
/// `StorageReadError`.
pub(super) fn error<'u>(
    kind: &Kind,
    found: impl ExactSizeIterator<Item = &'u Unreadable>,
) -> ApiError {
    let too_many = (found.len() > MAX_CAUSES).then(|| StatusCause {
        reason: "FieldValueTooMany".into(),
        message: "too many errors, the list is truncated".into(),
        ..Default::default()
    });
    let causes = found.take(MAX_CAUSES).map(|one| StatusCause {
        reason: "UnexpectedServerResponse".into(),
        message: one.message(kind),
        field: keys::object(kind, &one.key),
    });
    let message = format!(
        "failed to read one or more {} from the storage",
        kind.resource()
    );
    let mut error = ApiError::new(Reason::InternalError, message).with_details(StatusDetails {
        name: "list".into(),
        group: kind.group.clone(),
        kind: kind.plural.clone(),
        causes: causes.chain(too_many).collect(),
        ..Default::default()
    });
    error.status_override = Some(Box::new(StatusOverride {
        code: Reason::InternalError.http(),
        reason: "StorageReadError".into(),
    }));
    error
}
