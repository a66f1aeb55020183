//! The Events about claims and volumes.

use std::fmt;

use setpoint_controller::Recorder;
use setpoint_proto::core::ObjectReference;

/// The content of an Event, with upstream's reasons and messages.
#[derive(Clone, PartialEq, Eq)]
pub struct Notice {
    /// Whether it is a warning.
    pub is_warning: bool,
    /// The reason.
    pub reason: &'static str,
    /// The message.
    pub message: String,
}

/// Writes the reason and the message only, since plans are printed for users.
impl fmt::Debug for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

impl Notice {
    /// Returns a normal one.
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            is_warning: false,
            reason,
            message: message.into(),
        }
    }

    /// Returns a warning.
    pub fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            is_warning: true,
            ..Self::normal(reason, message)
        }
    }

    /// Records it as an Event about an object.
    pub(crate) fn record(&self, events: &Recorder, about: &ObjectReference) {
        match self.is_warning {
            true => events.warning(about, self.reason, &*self.message),
            false => events.normal(about, self.reason, &*self.message),
        }
    }
}
