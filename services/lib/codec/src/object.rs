//! Objects whose kind is known only at run time. The JSON code of each kind is compiled here only.

use std::any::Any;
use std::fmt::Debug;
use std::sync::LazyLock;

use bytes::Bytes;
use prost::Message;
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{Body, for_each_kind};

use crate::{Kind, kinds};

/// An object of any kind, which can be downcast to its message.
pub trait Object: Any + Debug + Send + Sync {
    /// Returns its kind.
    fn kind(&self) -> &'static Kind;
    /// Returns its metadata; empty for bodies without metadata, such as `DeleteOptions`.
    fn meta(&self) -> &ObjectMeta;
    /// Returns its metadata.
    ///
    /// # Panics
    /// For bodies without metadata, such as `DeleteOptions`.
    fn meta_mut(&mut self) -> &mut ObjectMeta;
    /// Returns its protobuf encoding.
    fn encode(&self) -> Bytes;
    /// Returns its JSON, which starts with `kind` and `apiVersion`.
    fn to_json(&self) -> Vec<u8>;
    /// Returns the same as a document.
    fn to_document(&self) -> Value;
    /// Returns its JSON as in a list, where `kind` and `apiVersion` are those of the list.
    fn to_json_item(&self) -> Vec<u8>;
    /// Returns a copy.
    fn clone_box(&self) -> Box<dyn Object>;
    /// Returns the message, for downcasts by reference.
    fn as_any(&self) -> &dyn Any;
    /// Returns the message, for downcasts by mutable reference.
    fn as_any_mut(&mut self) -> &mut dyn Any;
    /// Returns the message, for downcasts by value.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl dyn Object {
    /// Returns the message if it has this type.
    pub fn downcast_ref<T: 'static>(&self) -> Option<&T> {
        self.as_any().downcast_ref()
    }

    /// Returns the message if it has this type.
    pub fn downcast_mut<T: 'static>(&mut self) -> Option<&mut T> {
        self.as_any_mut().downcast_mut()
    }
}

impl Clone for Box<dyn Object> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}

/// The decoders of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Codec {
    pub decode: Reader<prost::DecodeError>,
    pub from_json: Reader<serde_json::Error>,
}

type Reader<Error> = fn(&[u8]) -> Result<Box<dyn Object>, Error>;

fn no_meta() -> &'static ObjectMeta {
    static NONE: LazyLock<ObjectMeta> = LazyLock::new(ObjectMeta::default);
    &NONE
}

/// Rejects arrays, which code derived by serde would accept as the fields of a struct in order.
fn read_json<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    match json.trim_ascii_start() {
        [b'[', ..] => Err(serde_json::Error::custom("expected an object")),
        _ => serde_json::from_slice(json),
    }
}

/// Writes kind and apiVersion before the fields of the message. `#[serde(flatten)]` would copy every field.
fn write_json<T: Serialize>(head: &str, message: &T) -> Vec<u8> {
    let mut json = Vec::with_capacity(1024);
    json.extend_from_slice(head.as_bytes());
    serde_json::to_writer(&mut json, message)
        .expect("writing to a Vec does not fail, and map keys are strings");
    match &json[head.len()..] {
        b"{}" => drop(json.remove(head.len())),
        _ => json[head.len()] = b',',
    }
    json
}

/// Adds kind and apiVersion to the fields of a message.
fn document(kind: &Kind, fields: serde_json::Result<Value>) -> Value {
    let mut document = fields.expect("a message has fields of JSON, whose keys are strings");
    document["kind"] = kind.kind.as_str().into();
    document["apiVersion"] = kind.api_version().into();
    document
}

macro_rules! objects {
    ($($message:path => $name:literal,)*) => {
        /// The decoders of each kind, by the name of its message.
        pub(crate) const CODECS: &[(&str, Codec)] = &[$((
            $name,
            Codec {
                decode: |raw| Ok(Box::new(<$message>::decode(raw)?)),
                from_json: |json| Ok(Box::new(read_json::<$message>(json)?)),
            },
        )),*];

        $(impl Object for $message {
            fn kind(&self) -> &'static Kind {
                static KIND: LazyLock<&'static Kind> =
                    LazyLock::new(|| kinds().by_message($name).expect("the table lists every kind"));
                &KIND
            }
            fn meta(&self) -> &ObjectMeta {
                self.metadata().unwrap_or_else(|| no_meta())
            }
            fn meta_mut(&mut self) -> &mut ObjectMeta {
                self.metadata_mut().expect("only objects with metadata are changed")
            }
            fn encode(&self) -> Bytes {
                self.encode_to_vec().into()
            }
            fn to_json(&self) -> Vec<u8> {
                write_json(Object::kind(self).json_head(), self)
            }
            fn to_document(&self) -> Value {
                document(Object::kind(self), serde_json::to_value(self))
            }
            fn to_json_item(&self) -> Vec<u8> {
                serde_json::to_vec(self)
                    .expect("writing to a Vec does not fail, and map keys are strings")
            }
            fn clone_box(&self) -> Box<dyn Object> {
                Box::new(self.clone())
            }
            fn as_any(&self) -> &dyn Any {
                self
            }
            fn as_any_mut(&mut self) -> &mut dyn Any {
                self
            }
            fn into_any(self: Box<Self>) -> Box<dyn Any> {
                self
            }
        })*
    };
}
for_each_kind!(objects);
