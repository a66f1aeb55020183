//! Errors of patches.

use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, Reason};

/// The message of all patches that cannot be applied. The cause of the error has the reason.
const UNPROCESSABLE: &str = "the server rejected our request due to an error in our request";

/// An error in applying a patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The patch is malformed.
    #[error("{0}")]
    Malformed(String),
    /// The patch cannot be applied to the document.
    #[error("{0}")]
    Unfit(String),
    /// A test of a JSON patch has failed.
    #[error("{0}")]
    TestFailed(String),
    /// The patch exceeds a limit.
    #[error("{0}")]
    TooLarge(String),
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Malformed(message) => Self::new(Reason::BadRequest, message),
            Error::TooLarge(message) => Self::new(Reason::RequestEntityTooLarge, message),
            Error::Unfit(message) | Error::TestFailed(message) => {
                let cause = StatusCause {
                    reason: "FieldValueInvalid".into(),
                    message,
                    field: "patch".into(),
                };
                Self::new(Reason::Invalid, UNPROCESSABLE).with_details(StatusDetails {
                    causes: vec![cause],
                    ..Default::default()
                })
            }
        }
    }
}
