//! One change, as it travels: the object inside stays encoded, so that one encoding serves every watcher.

use bytes::Bytes;
use prost::Message;

use crate::setpoint::Object;

/// The type of the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum EventType {
    /// Never sent.
    Unspecified = 0,
    /// The object is new to this watcher.
    Added = 1,
    /// The object changed.
    Modified = 2,
    /// The object is gone, or no longer of interest to this watcher.
    Deleted = 3,
    /// All changes up to this revision have been sent.
    Bookmark = 4,
}

/// `setpoint.v1.WatchEvent` on the wire; only here is `object` kept as the bytes of a [`Object`].
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct WatchEvent {
    /// The type of the event.
    #[prost(enumeration = "EventType", tag = "1")]
    pub r#type: i32,
    /// The encoded [`Object`].
    #[prost(bytes = "bytes", tag = "2")]
    pub object: Bytes,
    /// On the bookmark that ends the initial state.
    #[prost(bool, tag = "3")]
    pub initial_events_end: bool,
}

impl WatchEvent {
    /// The object inside.
    ///
    /// # Errors
    /// When the bytes are no [`Object`].
    pub fn object(&self) -> Result<Object, prost::DecodeError> {
        Object::decode(self.object.clone())
    }
}
