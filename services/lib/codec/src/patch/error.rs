//! Why a patch was refused.

use setpoint_proto::{ApiError, Reason};

/// A patch that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is no patch of its type.
    #[error("{0}")]
    Malformed(String),
    /// It does not fit the document.
    #[error("{0}")]
    Unfit(String),
    /// It is too much work.
    #[error("{0}")]
    TooLarge(String),
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let reason = match &error {
            Error::Malformed(_) => Reason::BadRequest,
            Error::Unfit(_) => Reason::Invalid,
            Error::TooLarge(_) => Reason::RequestEntityTooLarge,
        };
        Self::new(reason, error.to_string())
    }
}
