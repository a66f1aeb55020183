//! An object whose kind is known only at run time, and the one place where each kind's JSON code is compiled.

use std::any::Any;
use std::fmt::Debug;
use std::sync::LazyLock;

use bytes::Bytes;
use prost::Message;
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{Body, for_each_kind};

use crate::{Kind, kinds};

/// An object of any kind, typed inside: `as_any` gives it back.
pub trait Object: Any + Debug + Send + Sync {
    /// Returns its kind.
    fn kind(&self) -> &'static Kind;
    /// Its identity; empty for bodies that have none, such as `DeleteOptions`.
    fn meta(&self) -> &ObjectMeta;
    /// Its identity, to be changed.
    ///
    /// # Panics
    /// On bodies that have none, such as `DeleteOptions`.
    fn meta_mut(&mut self) -> &mut ObjectMeta;
    /// Its protobuf encoding.
    fn encode(&self) -> Bytes;
    /// Its JSON, `kind` and `apiVersion` first.
    fn to_json(&self) -> Vec<u8>;
    /// A copy.
    fn clone_box(&self) -> Box<dyn Object>;
    /// The message itself, to be downcast.
    fn as_any(&self) -> &dyn Any;
    /// The message itself, to be downcast and changed.
    fn as_any_mut(&mut self) -> &mut dyn Any;
    /// The message itself, to be downcast and kept.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl dyn Object {
    /// The message, if it is of this type.
    pub fn downcast_ref<T: 'static>(&self) -> Option<&T> {
        self.as_any().downcast_ref()
    }

    /// The message, if it is of this type, to be changed.
    pub fn downcast_mut<T: 'static>(&mut self) -> Option<&mut T> {
        self.as_any_mut().downcast_mut()
    }
}

impl Clone for Box<dyn Object> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}

/// The decoder of a kind.
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

/// Derived code would take an array for the message's fields in order.
fn read_json<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    match json.trim_ascii_start() {
        [b'[', ..] => Err(serde_json::Error::custom("expected an object")),
        _ => serde_json::from_slice(json),
    }
}

/// Splices kind and apiVersion before the message's own fields: flattening would cost every field a copy.
fn write_json<T: Serialize>(head: &str, message: &T) -> Vec<u8> {
    let mut json = Vec::with_capacity(1024);
    json.extend_from_slice(head.as_bytes());
    serde_json::to_writer(&mut json, message)
        .expect("a Vec takes all bytes, and map keys are strings");
    match &json[head.len()..] {
        b"{}" => drop(json.remove(head.len())),
        _ => json[head.len()] = b',',
    }
    json
}

macro_rules! objects {
    ($($message:path => $name:literal,)*) => {
        /// Each kind's message by name, and how to read it.
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
