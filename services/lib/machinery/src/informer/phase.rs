//! How an informer's copy stands towards the gateway's state: the state machine, without I/O.
//!
//! ```text
//!            watch begins                    initial state ends
//!   Empty ───────────────────▶ Filling ───────────────────────────▶ Following
//!     ▲                           │ watch ends                          │ watch ends: resumes
//!     ├───────────────────────────┘                                     │ where it was
//!     └──────────────────────────── Expired ────────────────────────────┘
//! ```
//!
//! Back in `Empty`, readers keep the last complete copy until the next one is complete.

use setpoint_model::{Key, Revision};
use setpoint_proto::setpoint::WatchRequest;
use setpoint_proto::{ApiError, Cause, EventType, Reason, Resource, WatchEvent};

use super::store::{Cached, Store};
use crate::View;
use crate::gateway::{ListOptions, parse, unpack};

/// See the picture above.
pub(super) enum Phase<V> {
    /// The next watch must begin with the whole state.
    Empty,
    /// The whole state is arriving; it is collected aside.
    Filling(Store<V>),
    /// Everything up to this revision has arrived.
    Following(Revision),
}

impl<V: View> Phase<V> {
    /// How to ask for what is missing.
    pub(super) fn request(&self, selection: &ListOptions) -> WatchRequest {
        let reached = self.reached();
        WatchRequest {
            resource: V::Object::RESOURCE.to_owned(),
            namespace: selection.namespace.clone(),
            label_selector: selection.labels.clone(),
            field_selector: selection.fields.clone(),
            revision: reached
                .map(|reached| reached.to_string())
                .unwrap_or_default(),
            send_initial_events: reached.is_none(),
            ..WatchRequest::default()
        }
    }

    /// The revision up to which everything has arrived, once that is so.
    pub(super) const fn reached(&self) -> Option<Revision> {
        match self {
            Self::Following(reached) => Some(*reached),
            Self::Empty | Self::Filling(_) => None,
        }
    }

    /// A watch begins.
    pub(super) fn begin(&mut self) {
        if !matches!(self, Self::Following(_)) {
            *self = Self::Filling(Store::default());
        }
    }

    /// A watch has ended, for this reason if it gave one.
    pub(super) fn end(&mut self, error: Option<&ApiError>) {
        let expired = error.is_some_and(|error| error.reason == Reason::Expired);
        if expired || matches!(self, Self::Filling(_)) {
            *self = Self::Empty;
        }
    }
}

/// What the gateway said, decoded.
pub(super) enum Event<V> {
    /// The object is now like this.
    Put(Cached<V>, Revision),
    /// The object of this name is gone.
    Remove(Key, Option<Cause>, Revision),
    /// Everything up to here has been said; with `true`, the initial state among it.
    Bookmark(Revision, bool),
}

impl<V: View> Event<V> {
    /// Copies out of the receive buffer whatever it keeps.
    pub(super) fn decode(event: &WatchEvent) -> Result<Self, ApiError> {
        let object = event
            .object()
            .map_err(|error| ApiError::new(Reason::InternalError, error.to_string()))?;
        let revision = parse(&object.revision)?;
        Ok(match event.r#type() {
            EventType::Bookmark => Self::Bookmark(revision, event.initial_events_end),
            EventType::Deleted => {
                let gone: V::Object = unpack(&object)?;
                Self::Remove(Key::of(gone.meta()), object.cause, revision)
            }
            EventType::Added | EventType::Modified | EventType::Unspecified => {
                let view = V::of(unpack(&object)?);
                Self::Put(Cached::new(view, object.cause), revision)
            }
        })
    }
}
