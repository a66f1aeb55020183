//! The error of an action, and its form as an API error, from which the status of the Pod is computed.

use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, Reason};
use setpoint_runtime as runtime;

use crate::pod::world::WaitingReason;

/// The error of an action.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The gateway returned an error or did not answer.
    #[error("the gateway returned an error")]
    Gateway(#[from] ApiError),
    /// The runtime returned an error.
    #[error("the runtime returned an error")]
    Runtime(#[from] runtime::Error),
    /// The Pod cannot be connected to the network of its node yet; with the reason.
    #[error("network is not ready: {0}")]
    Network(String),
    /// A container cannot be resized; with the reason.
    #[error("{0}")]
    Resize(String),
    /// A container cannot be started as its Pod configures it.
    #[error("{}", cannot_start(container, &waiting.message))]
    Config {
        /// Name of the container; empty if the whole Pod is affected.
        container: String,
        /// The container's waiting state.
        waiting: WaitingReason,
    },
}

fn cannot_start(container: &str, why: &str) -> String {
    match container {
        "" => format!("no container can be started: {why}"),
        named => format!("container {named} cannot be started: {why}"),
    }
}

/// The kind in the details of an error that keeps a container from starting.
const CONTAINER: &str = "Container";

/// The kind in the details of an error of a resize.
const RESIZE: &str = "Resize";

impl From<Error> for ApiError {
    /// Keeps the waiting state of a container in the error's details; see [`WaitingReason::of_error`].
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Gateway(error) => error,
            Error::Runtime(error) => {
                Self::new(Reason::InternalError, format!("{message}: {error}"))
            }
            Error::Network(_) => Self::new(Reason::ServiceUnavailable, message),
            Error::Resize(_) => {
                let kind = RESIZE.to_owned();
                Self::new(Reason::InternalError, message).with_details(StatusDetails {
                    kind,
                    ..StatusDetails::default()
                })
            }
            Error::Config { container, waiting } => {
                let cause = StatusCause {
                    reason: waiting.reason.into_owned(),
                    message: waiting.message,
                    ..StatusCause::default()
                };
                let details = StatusDetails {
                    kind: CONTAINER.to_owned(),
                    name: container,
                    causes: vec![cause],
                    ..StatusDetails::default()
                };
                Self::new(Reason::Invalid, message).with_details(details)
            }
        }
    }
}

/// Returns why a container cannot be resized, if this is such an error.
pub fn resize_error(error: &ApiError) -> Option<String> {
    let details = error.details.as_ref();
    let resizing = details.is_some_and(|details| details.kind == RESIZE);
    resizing.then(|| error.message.clone())
}

impl WaitingReason {
    /// Returns the name of the container that an error keeps from starting, and its waiting state.
    pub fn of_error(error: &ApiError) -> Option<(String, Self)> {
        let details = error
            .details
            .as_ref()
            .filter(|details| details.kind == CONTAINER)?;
        let cause = details.causes.first()?;
        let waiting = Self {
            reason: cause.reason.clone().into(),
            message: cause.message.clone(),
        };
        Some((details.name.clone(), waiting))
    }
}

/// Returns the message of a runtime's error, with its cause.
pub(super) fn runtime_message(error: &runtime::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}
