//! What an error of etcd's client means for the call that met it.

use std::error::Error as _;
use std::iter::successors;

use tonic::{Code, ConnectError, Status};

use crate::store::Error;

/// What is known after a call that failed.
#[derive(Debug)]
pub(super) enum Trouble {
    /// etcd has answered, and will not answer otherwise.
    Final(Error),
    /// The call never reached etcd.
    Unsent(Error),
    /// The call may have reached etcd.
    Doubt(Error),
}

impl Trouble {
    /// The error itself.
    pub fn into_error(self) -> Error {
        match self {
            Self::Final(error) | Self::Unsent(error) | Self::Doubt(error) => error,
        }
    }
}

impl From<etcd_client::Error> for Trouble {
    fn from(error: etcd_client::Error) -> Self {
        match error {
            etcd_client::Error::GRpcStatus(status) => status.into(),
            other => Self::Doubt(Error::Unavailable(other.to_string())),
        }
    }
}

impl From<Status> for Trouble {
    /// By text where etcd tells no more than that.
    fn from(status: Status) -> Self {
        let text = status.message();
        if is_connect_error(&status) {
            return Self::Unsent(Error::Unavailable(text.to_owned()));
        }
        match status.code() {
            // Compacted, or of the future: of a history that this store has lost.
            Code::OutOfRange if text.contains("revision") => Self::Final(Error::Expired),
            // tonic's words for an answer above its limit. Only a page of many entries can be so large.
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
            Code::Cancelled | Code::DeadlineExceeded => Self::Doubt(Error::Timeout),
            _ => Self::Doubt(Error::Unavailable(text.to_owned())),
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
    fn only_a_call_without_a_connection_was_surely_not_sent() {
        let trouble = |code, text: &str| Trouble::from(Status::new(code, text));
        assert!(matches!(
            trouble(Code::Unavailable, "tcp connect error"),
            Trouble::Unsent(_)
        ));
        for (code, text) in [
            (Code::Unavailable, "etcdserver: request timed out"),
            (
                Code::Unknown,
                "h2 protocol error: error reading a body from connection",
            ),
            (Code::Cancelled, "Timeout expired"),
        ] {
            assert!(matches!(trouble(code, text), Trouble::Doubt(_)), "{text}");
        }
    }

    #[test]
    fn etcd_is_understood_by_its_words() {
        let error = |code, text: &str| Trouble::from(Status::new(code, text)).into_error();
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
