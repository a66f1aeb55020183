//! Errors in decoding objects, with the messages of Kubernetes.

use setpoint_proto::{ApiError, Reason};

use crate::Kind;

/// An error in decoding an object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The protobuf encoding is malformed.
    #[error("{} in version {:?} cannot be handled as a {}: malformed protobuf", kind.kind, kind.version, kind.kind)]
    Malformed {
        /// The expected kind.
        kind: &'static Kind,
        /// The cause.
        source: prost::DecodeError,
    },
    /// The JSON is malformed, or a value has the wrong type.
    #[error("{} in version {:?} cannot be handled as a {}: {problem}", kind.kind, kind.version, kind.kind)]
    Json {
        /// The expected kind.
        kind: &'static Kind,
        /// The problem and the field.
        problem: String,
    },
}

impl Error {
    pub(crate) fn json(kind: &'static Kind, problem: String) -> Self {
        Self::Json { kind, problem }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self::new(Reason::BadRequest, error.to_string())
    }
}
