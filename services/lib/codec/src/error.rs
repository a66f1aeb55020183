//! Why bytes are no object, in the words that kubectl users know.

use setpoint_proto::{ApiError, Reason};

use crate::Kind;

/// Bytes that are no object of their kind.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Bad protobuf.
    #[error("{} in version {:?} cannot be handled as a {}: malformed protobuf", kind.kind, kind.version, kind.kind)]
    Malformed {
        /// The expected type.
        kind: &'static Kind,
        /// Where decoding stopped.
        source: prost::DecodeError,
    },
    /// Bad JSON, or a value of the wrong type.
    #[error("{} in version {:?} cannot be handled as a {}: {problem}", kind.kind, kind.version, kind.kind)]
    Json {
        /// The expected type.
        kind: &'static Kind,
        /// The reason, with the field.
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
