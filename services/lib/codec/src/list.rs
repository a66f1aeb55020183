//! Lists in protobuf.

use bytes::Bytes;
use prost::Message;
use setpoint_proto::meta::ListMeta;

/// A list of any kind in protobuf, with items that are encoded.
#[derive(Clone, PartialEq, Message)]
pub struct EncodedList {
    /// The metadata of the list.
    #[prost(message, optional, tag = "1")]
    pub metadata: Option<ListMeta>,
    /// The items, each a message of the kind.
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub items: Vec<Bytes>,
}
