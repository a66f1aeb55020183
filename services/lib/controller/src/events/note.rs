//! One thing worth telling.

use jiff::Timestamp;
use setpoint_proto::TraceContext;
use setpoint_proto::core::ObjectReference;

/// Does it need attention?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Type {
    Normal,
    Warning,
}

impl Type {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// One thing worth telling, once.
#[derive(Clone, Debug)]
pub(super) struct Note {
    pub(super) about: ObjectReference,
    pub(super) kind: Type,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) at: Timestamp,
    /// The cascade that it belongs to.
    pub(super) trace: TraceContext,
}
