//! Classes of errors of etcd's client, by what is known about the call that failed.

use std::error::Error as _;
use std::iter::successors;

use tonic::{Code, ConnectError, Status};

use crate::Error;

/// An error, by what is known about the call.
#[derive(Debug)]
pub(super) enum ErrorClass {
    /// etcd has answered, and would answer a repeated call in the same way.
    Final(Error),
    /// The call was not sent.
    Unsent(Error),
    /// etcd may have received the call.
    Unknown(Error),
}

impl ErrorClass {
    /// Returns the error itself.
    pub fn into_error(self) -> Error {
        match self {
            Self::Final(error) | Self::Unsent(error) | Self::Unknown(error) => error,
        }
    }
}

impl From<etcd_client::Error> for ErrorClass {
    fn from(error: etcd_client::Error) -> Self {
        match error {
            etcd_client::Error::GRpcStatus(status) => status.into(),
            other => Self::Unknown(Error::Unavailable(other.to_string())),
        }
    }
}

impl From<Status> for ErrorClass {
    /// Classifies by code, and by message where etcd uses one code for several errors.
    fn from(status: Status) -> Self {
        let text = status.message();
        if is_connect_error(&status) {
            return Self::Unsent(Error::Unavailable(text.to_owned()));
        }
        match status.code() {
            // Compacted, or a future revision, which is one of a history that etcd has lost.
            Code::OutOfRange if text.contains("revision") => Self::Final(Error::Expired),
            // tonic's message for a response above its limit. Only pages of many entries are that large.
            Code::OutOfRange if text.contains("message length too large") => {
                Self::Final(Error::TooLarge)
            }
            Code::InvalidArgument if text.contains("too large") => Self::Final(Error::TooLarge),
            Code::ResourceExhausted if text.contains("larger than max") => {
                Self::Final(Error::TooLarge)
            }
            Code::InvalidArgument
            | Code::ResourceExhausted
            | Code::PermissionDenied
            | Code::Unauthenticated => Self::Final(Error::Refused(text.to_owned())),
            // tonic reports its own deadline as Cancelled.
            Code::Cancelled | Code::DeadlineExceeded => Self::Unknown(Error::Timeout),
            _ => Self::Unknown(Error::Unavailable(text.to_owned())),
        }
    }
}

fn is_connect_error(status: &Status) -> bool {
    let mut chain = successors(status.source(), |&error| error.source());
    chain.any(|error| error.is::<ConnectError>())
        || (status.code() == Code::Unavailable && status.message().contains("connect error"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_call_is_unsent_only_if_there_was_no_connection() {
        let error_class = |code, text: &str| ErrorClass::from(Status::new(code, text));
        assert!(matches!(
            error_class(Code::Unavailable, "tcp connect error"),
            ErrorClass::Unsent(_)
        ));
        for (code, text) in [
            (Code::Unavailable, "etcdserver: request timed out"),
            (
                Code::Unknown,
                "h2 protocol error: error reading a body from connection",
            ),
            (Code::Cancelled, "Timeout expired"),
        ] {
            assert!(
                matches!(error_class(code, text), ErrorClass::Unknown(_)),
                "{text}"
            );
        }
    }

    #[test]
    fn a_status_of_etcd_is_classified_by_code_and_message() {
        let error = |code, text: &str| ErrorClass::from(Status::new(code, text)).into_error();
        let compacted = "etcdserver: mvcc: required revision has been compacted";
        assert_eq!(error(Code::OutOfRange, compacted), Error::Expired);
        let page = "Error, decoded message length too large: found 9 bytes, the limit is: 8 bytes";
        assert_eq!(error(Code::OutOfRange, page), Error::TooLarge);
        let large = "etcdserver: request is too large";
        assert_eq!(error(Code::InvalidArgument, large), Error::TooLarge);
        let full = "etcdserver: mvcc: database space exceeded";
        assert_eq!(
            error(Code::ResourceExhausted, full),
            Error::Refused(full.into())
        );
    }
}
