//! Errors of patches.

use setpoint_proto::{ApiError, Reason};

/// An error in applying a patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The patch is malformed.
    #[error("{0}")]
    Malformed(String),
    /// The patch cannot be applied to the document.
    #[error("{0}")]
    Unfit(String),
    /// The patch exceeds a limit.
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
