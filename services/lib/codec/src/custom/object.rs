//! Objects of custom kinds: typed metadata, and the other fields as JSON.

use std::any::Any;

use bytes::Bytes;
use prost::Message as _;
use serde_json::{Map, Value};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::setpoint;

use crate::{Error, Kind, Object, depth, json_error};

/// An object of a custom kind.
#[derive(Clone, Debug)]
pub struct CustomObject {
    kind: &'static Kind,
    metadata: ObjectMeta,
    /// The fields except `kind`, `apiVersion` and `metadata`.
    pub content: Map<String, Value>,
}

/// The fields that are not part of [`CustomObject::content`].
const TYPE: [&str; 2] = ["kind", "apiVersion"];
const METADATA: &str = "metadata";

impl CustomObject {
    /// The type URL in an `Any`, which all custom kinds have.
    pub const TYPE_URL: &str = "type.googleapis.com/setpoint.v1.CustomObject";

    /// Decodes a `setpoint.v1.CustomObject`. The object is of the version that the message names, or else of `kind`.
    pub(crate) fn decode(kind: &'static Kind, raw: &[u8]) -> Result<Self, Error> {
        let malformed = |source| Error::Malformed { kind, source };
        let message = setpoint::CustomObject::decode(raw).map_err(malformed)?;
        let content = match message.content.as_ref() {
            [] => Map::new(),
            json => serde_json::from_slice(json).map_err(|error| unreadable(kind, &error))?,
        };
        Ok(Self {
            kind: kind.in_version(&message.api_version),
            metadata: message.metadata.unwrap_or_default(),
            content,
        })
    }

    /// Reads the JSON of an object. Of duplicate keys the last one applies.
    pub(crate) fn from_json(kind: &'static Kind, json: &[u8]) -> Result<Self, Error> {
        let document = serde_json::from_slice::<Value>(json)
            .map_err(|error| Error::json(kind, json_error::syntax(json, &error)))?;
        Self::from_document(kind, document)
    }

    fn from_document(kind: &'static Kind, document: Value) -> Result<Self, Error> {
        let Value::Object(mut content) = document else {
            let problem = "json: cannot unmarshal into Go value of type map[string]interface {}";
            return Err(Error::json(kind, problem.to_owned()));
        };
        for name in TYPE {
            content.remove(name);
        }
        let metadata = content.remove(METADATA).unwrap_or(Value::Null);
        let metadata = serde_json::from_value::<Option<ObjectMeta>>(metadata).map_err(|error| {
            let error = json_error::without_position(&error);
            Error::json(kind, format!("unable to decode metadata: {error}"))
        })?;
        Ok(Self {
            kind,
            metadata: metadata.unwrap_or_default(),
            content,
        })
    }

    /// Returns the object as JSON, with `kind` and `apiVersion`.
    pub fn document(&self) -> Value {
        let mut document = self.content.clone();
        document.insert("apiVersion".to_owned(), self.kind.api_version().into());
        document.insert("kind".to_owned(), self.kind.kind.clone().into());
        document.insert(METADATA.to_owned(), metadata(&self.metadata));
        Value::Object(document)
    }

    /// Returns the depth of the object as JSON, its metadata left out.
    pub fn depth(&self) -> usize {
        let fields = self.content.values().map(depth);
        1 + fields.max().unwrap_or_default()
    }

    /// Returns the object as one of another version, with the same fields.
    #[must_use]
    pub fn with_kind(self, kind: &'static Kind) -> Self {
        Self { kind, ..self }
    }

    /// Returns an object of another version, with the same metadata and no other fields.
    #[must_use]
    pub fn emptied(&self, kind: &'static Kind) -> Self {
        Self {
            kind,
            metadata: self.metadata.clone(),
            content: Map::new(),
        }
    }

    pub(crate) fn boxed(self) -> Box<dyn Object> {
        Box::new(self)
    }
}

/// Returns metadata as JSON. Managed fields that are no JSON, or nested too deeply, are left out, as upstream drops
/// those that it cannot decode.
fn metadata(metadata: &ObjectMeta) -> Value {
    serde_json::to_value(metadata).unwrap_or_else(|_| {
        let readable = ObjectMeta {
            managed_fields: Vec::new(),
            ..metadata.clone()
        };
        serde_json::to_value(readable).expect("the other fields are texts, numbers and times")
    })
}

fn unreadable(kind: &'static Kind, error: &serde_json::Error) -> Error {
    Error::json(kind, format!("json parse error: {error}"))
}

/// Encodes the JSON of an object, as it is stored, as a `setpoint.v1.CustomObject`.
///
/// # Errors
/// If it is not an object, or its metadata is malformed.
pub(crate) fn encode_json(api_version: &str, kind: &str, json: &[u8]) -> serde_json::Result<Bytes> {
    let mut content: Map<String, Value> = serde_json::from_slice(json)?;
    for name in TYPE {
        content.remove(name);
    }
    let metadata = content.remove(METADATA).unwrap_or(Value::Null);
    let message = setpoint::CustomObject {
        metadata: serde_json::from_value(metadata)?,
        content: Value::Object(content).to_string().into(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    };
    Ok(message.encode_to_vec().into())
}

impl Object for CustomObject {
    fn kind(&self) -> &'static Kind {
        self.kind
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
    fn encode(&self) -> Bytes {
        let content = serde_json::to_vec(&self.content);
        let message = setpoint::CustomObject {
            metadata: Some(self.metadata.clone()),
            content: content.expect("the keys of JSON are texts").into(),
            api_version: self.kind.api_version(),
            kind: self.kind.kind.clone(),
        };
        message.encode_to_vec().into()
    }
    fn to_json(&self) -> Vec<u8> {
        self.document().to_string().into_bytes()
    }
    fn to_document(&self) -> Value {
        self.document()
    }
    fn to_json_item(&self) -> Vec<u8> {
        // Lists of custom objects name the kind of each, as upstream.
        self.to_json()
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
}
