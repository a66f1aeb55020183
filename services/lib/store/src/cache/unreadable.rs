//! Stored values that cannot be decoded, and the errors of reads that meet them, in Kubernetes' wording.

use setpoint_codec::{Kind, envelope};
use setpoint_model::{Key, Revision};
use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, Reason, StatusOverride};

use crate::keys;

/// The largest number of values that the error of a list names, as upstream.
const MAX_CAUSES: usize = 100;

/// A value that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Namespace and name of the object.
    pub key: Key,
    /// The revision of its last write.
    pub revision: Revision,
    why: String,
}

impl Unreadable {
    pub(super) fn new(key: Key, revision: Revision, error: &envelope::Error) -> Self {
        let why = error.to_string();
        Self { key, revision, why }
    }

    fn message(&self, kind: &Kind) -> String {
        let Self { key, revision, why } = self;
        let path = keys::object(kind, key);
        format!(
            "StorageError: corrupt object, Code: 7, Key: {path}, ResourceVersion: 0, \
             AdditionalErrorMsg: object not decodable revision={revision}: {why}"
        )
    }

    /// Returns the error of a read of this object.
    pub(super) fn error(&self, kind: &Kind) -> ApiError {
        let message = self.message(kind);
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
