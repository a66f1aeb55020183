//! Watch events whose object stays encoded, so that one encoding serves all watchers.

use bytes::Bytes;
use prost::Message;

use crate::setpoint::Object;

/// The type of the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum EventType {
    /// Never sent.
    Unspecified = 0,
    /// The object was created, or is now selected by the filter of the watch.
    Added = 1,
    /// The object changed.
    Modified = 2,
    /// The object was deleted, or is no longer selected by the filter of the watch.
    Deleted = 3,
    /// All changes up to this revision have been sent.
    Bookmark = 4,
}

/// `setpoint.v1.WatchEvent`, with `object` as the bytes of an [`Object`].
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct WatchEvent {
    /// The type of the event.
    #[prost(enumeration = "EventType", tag = "1")]
    pub r#type: i32,
    /// The encoded [`Object`].
    #[prost(bytes = "bytes", tag = "2")]
    pub object: Bytes,
    /// Whether this is the bookmark at the end of the initial state.
    #[prost(bool, tag = "3")]
    pub initial_events_end: bool,
}

impl WatchEvent {
    /// Decodes the object.
    ///
    /// # Errors
    /// If the bytes are malformed.
    pub fn object(&self) -> Result<Object, prost::DecodeError> {
        Object::decode(self.object.clone())
    }
}
