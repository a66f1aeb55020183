//! Why the store did not do as asked, and what a caller hears of it.

use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, FENCED, Reason};

use super::Entry;

/// Why the store did not do as asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The entry is not as the write expects it. Nothing was written.
    #[error(
        "the object has been modified; please apply your changes to the latest version and try again"
    )]
    Conflict {
        /// How it is.
        current: Option<Entry>,
    },
    /// The writer's lease term stands no more. Nothing was written.
    #[error("the lease term under which this was written has ended")]
    Fenced,
    /// The term to begin with this write does not follow on the standing one. Nothing was written.
    #[error("the lease stands at another term")]
    TermMoved {
        /// The standing term.
        stands: Option<u64>,
    },
    /// Something that the write rests on is no longer as it was seen. Nothing was written.
    #[error("what this write rests on has changed; please try again")]
    Overtaken,
    /// That revision is gone from the history: compacted, or lost with it.
    #[error("The resourceVersion for the provided watch is too old.")]
    Expired,
    /// The value is more than the store takes. Nothing was written.
    #[error("the request is too large for the store")]
    TooLarge,
    /// The store is full or overrun. Nothing was written.
    #[error("the store takes no writes: {0}")]
    Refused(String),
    /// The write may have been committed, or may yet be.
    #[error("the outcome of the write is unknown: look at the object before trying again")]
    Unknown,
    /// No answer in time. If it was a write, nothing was written.
    #[error("the store did not answer in time")]
    Timeout,
    /// The store cannot be reached. If it was a write, nothing was written.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
}

impl Error {
    fn reason(&self) -> Reason {
        match self {
            Self::Conflict { .. } | Self::Fenced | Self::TermMoved { .. } | Self::Overtaken => {
                Reason::Conflict
            }
            Self::Expired => Reason::Expired,
            Self::TooLarge => Reason::RequestEntityTooLarge,
            Self::Unknown | Self::Timeout => Reason::Timeout,
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
    fn a_fenced_writer_can_tell_that_from_any_other_conflict() {
        assert!(ApiError::from(Error::Fenced).is_fenced());
        let conflict = ApiError::from(Error::Conflict { current: None });
        assert!(!conflict.is_fenced());
        assert_eq!(conflict.reason, Reason::Conflict);
    }
}
