//! Encodes objects, lists and watch events in the format that the client accepts.

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use prost::Message;
use serde_json::{Value, json};
use setpoint_codec::{Kind, Object, envelope};
use setpoint_proto::meta::{self, ListMeta, RawExtension};
use setpoint_proto::{ApiError, Reason};

use super::accept::{self, Format, PROTOBUF};
use super::query::Query;
use super::response::{self, ApiResponse};
use super::table::{self, Include};
use super::yaml::{self, YAML};
use crate::registry;

/// The format of a response, from `Accept` and the query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoder {
    format: Format,
    include: Include,
    pretty: bool,
}

/// The protobuf encoding of a list of any kind, with items that are encoded already.
#[derive(Clone, PartialEq, Message)]
struct EncodedList {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ListMeta>,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    items: Vec<Bytes>,
}

impl Encoder {
    /// Returns the encoder for a request.
    ///
    /// # Errors
    /// `NotAcceptable` if `Accept` allows no supported format.
    pub(super) fn negotiate(query: &Query, headers: &HeaderMap) -> Result<Self, ApiError> {
        let include = match query.get("includeObject") {
            None | Some("Metadata") => Include::Metadata,
            Some("Object") => Include::Object,
            Some("None") => Include::Nothing,
            Some(other) => return Err(unknown_include(other)),
        };
        Ok(Self {
            format: accept::objects(headers)?,
            include,
            pretty: response::is_pretty(query, headers),
        })
    }

    /// Checks that a stream of events can be encoded.
    ///
    /// # Errors
    /// `NotAcceptable` for YAML.
    pub(super) fn check_stream(&self) -> Result<(), ApiError> {
        match self.format {
            Format::Yaml => Err(accept::not_acceptable()),
            _ => Ok(()),
        }
    }

    /// Encodes JSON as it is, or converted to YAML.
    pub(super) fn text(&self, json: Vec<u8>) -> Result<ApiResponse, ApiError> {
        Ok(match self.format {
            Format::Yaml => ApiResponse::new(HeaderValue::from_static(YAML), yaml::write(&json)?),
            _ => ApiResponse::json(json, self.pretty),
        })
    }

    /// Encodes an object. Objects of kinds that are not stored have neither a table nor metadata and are encoded whole.
    pub(super) fn object(
        &self,
        response: registry::ObjectResponse,
    ) -> Result<ApiResponse, ApiError> {
        let kind = response.kind;
        Ok(match self.format {
            Format::Protobuf => protobuf(kind, &kind.kind, &response.raw),
            Format::Table(_) | Format::PartialMetadata if kind.is_stored() => {
                response::document(&self.converted(&*response.into_object()?), self.pretty)
            }
            _ => self.text(response.into_object()?.to_json())?,
        })
    }

    /// Converts an object to a table of one row, or to its metadata.
    fn converted(&self, object: &dyn Object) -> Value {
        match self.format {
            Format::Table(version) => {
                let list = ListMeta {
                    resource_version: object.meta().resource_version.clone(),
                    ..Default::default()
                };
                let row = table::row(object, self.include, Timestamp::now());
                self.table(object.kind(), version, &list, vec![row])
            }
            _ => table::partial(&table::json_of(object)),
        }
    }

    fn table(&self, kind: &Kind, version: &str, list: &ListMeta, rows: Vec<Value>) -> Value {
        json!({
            "kind": "Table",
            "apiVersion": format!("meta.k8s.io/{version}"),
            "metadata": list,
            "columnDefinitions": table::columns(kind),
            "rows": rows,
        })
    }

    /// Encodes a list of encoded objects.
    pub(super) fn list(
        &self,
        kind: &'static Kind,
        metadata: ListMeta,
        items: Vec<Bytes>,
    ) -> Result<ApiResponse, ApiError> {
        let objects = items.iter().map(|raw| kind.decode(raw));
        Ok(match self.format {
            Format::Protobuf => {
                let list = EncodedList {
                    metadata: Some(metadata),
                    items,
                };
                protobuf(kind, &kind.list_kind(), &list.encode_to_vec())
            }
            Format::Table(version) => {
                let now = Timestamp::now();
                let rows = objects.map(|object| Ok(table::row(&*object?, self.include, now)));
                let rows = rows.collect::<Result<_, ApiError>>()?;
                response::document(&self.table(kind, version, &metadata, rows), self.pretty)
            }
            Format::PartialMetadata => {
                let items = objects.map(|object| Ok(table::partial(&table::json_of(&*object?))));
                let document = json!({
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": metadata,
                    "items": items.collect::<Result<Value, ApiError>>()?,
                });
                response::document(&document, self.pretty)
            }
            _ => self.text(json_list(kind, &metadata, objects)?)?,
        })
    }

    /// Returns the content type of a stream of events.
    pub(super) fn stream_type(&self) -> HeaderValue {
        HeaderValue::from_static(match self.format {
            Format::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            _ => "application/json",
        })
    }

    /// Encodes a watch event with an encoded object.
    pub(super) fn event(
        &self,
        name: &str,
        kind: &'static Kind,
        raw: &[u8],
    ) -> Result<Bytes, ApiError> {
        Ok(match self.format {
            Format::Protobuf => framed(
                name,
                envelope::write(&kind.api_version(), &kind.kind, raw, None),
            ),
            Format::Table(_) | Format::PartialMetadata => line(
                name,
                self.converted(&*kind.decode(raw)?).to_string().as_bytes(),
            ),
            _ => line(name, &kind.decode(raw)?.to_json()),
        })
    }

    /// Encodes the `ERROR` event that ends a stream.
    pub(super) fn error(&self, error: &ApiError) -> Bytes {
        let status = error.to_status();
        match self.format {
            Format::Protobuf => framed(
                "ERROR",
                envelope::write("v1", "Status", &status.encode_to_vec(), None),
            ),
            _ => line("ERROR", &status.to_json()),
        }
    }
}

fn protobuf(of: &Kind, kind: &str, raw: &[u8]) -> ApiResponse {
    let body = envelope::write(&of.api_version(), kind, raw, None);
    ApiResponse::new(HeaderValue::from_static(PROTOBUF), body)
}

fn json_list<E>(
    kind: &Kind,
    metadata: &ListMeta,
    objects: impl Iterator<Item = Result<Box<dyn Object>, E>>,
) -> Result<Vec<u8>, E> {
    let head = json!({
        "kind": kind.list_kind(),
        "apiVersion": kind.api_version(),
        "metadata": metadata,
    });
    let mut body = head.to_string().into_bytes();
    body.pop();
    body.extend_from_slice(br#","items":["#);
    for (index, object) in objects.enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend(object?.to_json());
    }
    body.extend_from_slice(b"]}");
    Ok(body)
}

fn line(name: &str, json: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(json.len() + 40);
    line.put_slice(format!(r#"{{"type":"{name}","object":"#).as_bytes());
    line.put_slice(json);
    line.put_slice(b"}\n");
    line.freeze()
}

/// Returns a protobuf event, preceded by its length as a big-endian `u32`.
fn framed(name: &str, object: Bytes) -> Bytes {
    let event = meta::WatchEvent {
        r#type: name.into(),
        object: RawExtension { raw: object },
    };
    let mut frame = BytesMut::with_capacity(event.encoded_len() + 4);
    frame.put_u32(event.encoded_len() as u32);
    frame.put_slice(&event.encode_to_vec());
    frame.freeze()
}

fn unknown_include(value: &str) -> ApiError {
    let message = format!("unrecognized includeObject value: {value:?}");
    ApiError::new(Reason::BadRequest, message)
}
