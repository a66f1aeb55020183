//! `google.protobuf.Any` whose value shares its buffer instead of copying it.

use bytes::Bytes;
use prost::Message;

use crate::{ApiError, Reason, Resource};

/// An encoded message and the name of its type.
///
/// A decoded value is a slice of the receive buffer and keeps all of it alive. Copy values that outlive the call.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Any {
    /// `type.googleapis.com/` and the full name of the message.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The encoded message.
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

impl Any {
    /// Encodes an object.
    pub fn pack<T: Resource>(object: &T) -> Self {
        Self {
            type_url: T::TYPE_URL.to_owned(),
            value: object.encode_to_vec().into(),
        }
    }

    /// Decodes the object.
    ///
    /// # Errors
    /// `BadRequest` if the type is another one, or the bytes are malformed.
    pub fn unpack<T: Resource>(&self) -> Result<T, ApiError> {
        if self.type_url != T::TYPE_URL {
            let message = format!("expected {}, found {:?}", T::TYPE_URL, self.type_url);
            return Err(ApiError::new(Reason::BadRequest, message));
        }
        T::decode(self.value.as_ref()).map_err(|error| {
            ApiError::new(
                Reason::BadRequest,
                format!("malformed {}: {error}", T::KIND),
            )
        })
    }
}
