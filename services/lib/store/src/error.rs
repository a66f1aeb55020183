//! Errors of the store, and their translation to API errors.

use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, FENCED, Reason};

use super::Entry;

/// An error of a store.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The key is not as the write expects it. Nothing was written.
    #[error(
        "the object has been modified; please apply your changes to the latest version and try again"
    )]
    Conflict {
        /// The current entry; `None` if there is none.
        current: Option<Entry>,
    },
    /// The lease term of the writer has ended. Nothing was written.
    #[error("the lease term under which this was written has ended")]
    Fenced,
    /// The lease is not at the term from which the write would advance it. Nothing was written.
    #[error("the lease is at another term")]
    TermMoved {
        /// The current term.
        current: Option<u64>,
    },
    /// A precondition of the write does not hold. Nothing was written.
    #[error("a precondition of this write no longer holds; please try again")]
    PreconditionFailed,
    /// The history does not include the revision: it was compacted, or the store has lost its data.
    #[error("The resourceVersion for the provided watch is too old.")]
    Expired,
    /// The value is too large for the store. Nothing was written.
    #[error("the request is too large for the store")]
    TooLarge,
    /// The store is full or overloaded. Nothing was written.
    #[error("the store refuses the request: {0}")]
    Refused(String),
    /// The write may have been committed, or may still be.
    #[error("the outcome of the write is unknown: read the object before trying again")]
    Unknown,
    /// The store did not answer in time. Nothing was written.
    #[error("the store did not answer in time")]
    Timeout,
    /// The value cannot be encrypted. Nothing was written.
    #[error("Internal error occurred: {0}")]
    Encryption(setpoint_encryption::Error),
    /// The store cannot be reached. Nothing was written.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
}

impl Error {
    fn reason(&self) -> Reason {
        match self {
            Self::Conflict { .. }
            | Self::Fenced
            | Self::TermMoved { .. }
            | Self::PreconditionFailed => Reason::Conflict,
            Self::Expired => Reason::Expired,
            Self::TooLarge => Reason::RequestEntityTooLarge,
            Self::Unknown | Self::Timeout => Reason::Timeout,
            Self::Encryption(_) => Reason::InternalError,
            Self::Refused(_) | Self::Unavailable(_) => Reason::ServiceUnavailable,
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let api = Self::new(error.reason(), message.clone());
        match error {
            Error::Fenced => api.with_details(StatusDetails {
                causes: vec![StatusCause {
                    reason: FENCED.into(),
                    message,
                    ..Default::default()
                }],
                ..Default::default()
            }),
            _ => api,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fenced_write_is_a_conflict_with_the_cause_fenced() {
        assert!(ApiError::from(Error::Fenced).is_fenced());
        let conflict = ApiError::from(Error::Conflict { current: None });
        assert!(!conflict.is_fenced());
        assert_eq!(conflict.reason, Reason::Conflict);
    }
}
