//! The reason of a container's `waiting` state.

use std::borrow::Cow;

/// The reason and the message of a container's `waiting` state.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitingReason {
    /// A CamelCase reason, such as `ErrImagePull`.
    pub reason: Cow<'static, str>,
    /// Human-readable details.
    pub message: String,
}

impl WaitingReason {
    /// Returns the reason of a container whose configuration cannot be resolved.
    pub fn config(message: String) -> Self {
        let reason = "CreateContainerConfigError".into();
        Self { reason, message }
    }

    /// Returns the reason of a container that the engine refuses to create or start.
    pub fn refused(message: String) -> Self {
        let reason = "CreateContainerError".into();
        Self { reason, message }
    }
}
