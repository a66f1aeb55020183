//! The state machine of an informer, without I/O.
//!
//! ```text
//!            watch begins                    initial state ends
//!   Empty ───────────────────▶ Filling ───────────────────────────▶ Following
//!     ▲                           │ watch ends                          │ watch ends: resumes
//!     ├───────────────────────────┘                                     │ where it was
//!     └──────────────────────────── Expired ────────────────────────────┘
//! ```
//!
//! Back in `Empty`, readers see the last complete cache until the next one is complete.

use setpoint_model::{Key, Revision};
use setpoint_proto::setpoint::WatchRequest;
use setpoint_proto::{ApiError, Cause, EventType, Reason, Resource, WatchEvent};

use super::store::{Cached, Store};
use crate::View;
use crate::client::{ListOptions, parse, unpack};

/// The phase of an informer; see the diagram above.
pub(super) enum Phase<V> {
    /// The next watch must begin with the initial state.
    Empty,
    /// The initial state is arriving; it is collected in a store of its own.
    Filling(Store<V>),
    /// Every change up to this revision has arrived.
    Following(Revision),
}

impl<V: View> Phase<V> {
    /// Returns the next request.
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

    /// Returns the revision up to which every change has arrived; `None` before the initial state is complete.
    pub(super) const fn reached(&self) -> Option<Revision> {
        match self {
            Self::Following(reached) => Some(*reached),
            Self::Empty | Self::Filling(_) => None,
        }
    }

    /// Enters the phase of a watch that begins.
    pub(super) fn begin(&mut self) {
        if !matches!(self, Self::Following(_)) {
            *self = Self::Filling(Store::default());
        }
    }

    /// Enters the phase after a watch that has ended, with an error or without.
    pub(super) fn end(&mut self, error: Option<&ApiError>) {
        let expired = error.is_some_and(|error| error.reason == Reason::Expired);
        if expired || matches!(self, Self::Filling(_)) {
            *self = Self::Empty;
        }
    }
}

/// A decoded event of the gateway.
pub(super) enum Event<V> {
    /// The new version of an object.
    Put(Cached<V>, Revision),
    /// The object of this key was deleted.
    Remove(Key, Option<Cause>, Revision),
    /// Every change up to this revision has been sent; `true` at the end of the initial state.
    Bookmark(Revision, bool),
}

impl<V: View> Event<V> {
    /// Decodes an event. Everything that is kept is copied out of the receive buffer.
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

#[cfg(test)]
mod tests {
    use setpoint_proto::core::ConfigMap;

    use super::*;
    use crate::Whole;

    #[test]
    fn a_watch_requests_the_selection_from_the_revision_reached() {
        let selection = ListOptions {
            namespace: "default".to_owned(),
            labels: "app=web".to_owned(),
            fields: "metadata.name=a".to_owned(),
        };
        let mut phase = Phase::<Whole<ConfigMap>>::Empty;
        let mut expected = WatchRequest {
            resource: "configmaps".to_owned(),
            namespace: "default".to_owned(),
            label_selector: "app=web".to_owned(),
            field_selector: "metadata.name=a".to_owned(),
            send_initial_events: true,
            ..WatchRequest::default()
        };
        assert_eq!(phase.request(&selection), expected);
        phase = Phase::Following(Revision::from_raw(7));
        expected.revision = "7".to_owned();
        expected.send_initial_events = false;
        assert_eq!(phase.request(&selection), expected);
    }

    #[test]
    fn a_complete_cache_is_resumed_unless_its_revision_has_expired() {
        let expired = ApiError::new(Reason::Expired, "too old");
        let lost = ApiError::new(Reason::ServiceUnavailable, "going away");
        for (error, resumed) in [(None, true), (Some(&lost), true), (Some(&expired), false)] {
            let mut phase = Phase::<Whole<ConfigMap>>::Following(Revision::from_raw(7));
            phase.begin();
            phase.end(error);
            assert_eq!(phase.reached().is_some(), resumed, "{error:?}");
            let mut phase = Phase::<Whole<ConfigMap>>::Empty;
            phase.begin();
            assert!(matches!(phase, Phase::Filling(_)));
            phase.end(error);
            assert!(matches!(phase, Phase::Empty));
        }
    }
}
