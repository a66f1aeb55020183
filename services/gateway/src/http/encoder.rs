//! Encodes objects, lists and watch events in the format that the client accepts.

use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderValue;
use jiff::Timestamp;
use prost::Message;
use serde_json::{Value, json};
use setpoint_codec::{Kind, Object, envelope};
use setpoint_proto::meta::{self, ListMeta, PartialObjectMetadata, RawExtension, Status};
use setpoint_proto::{ApiError, Reason};

use super::accept::{self, Form, Format, Media};
use super::discovery::subresource_kind;
use super::handler::ObjectRequest;
use super::query::Query;
use super::response::{self, ApiResponse};
use super::table::{self, Include};
use super::yaml;
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
    /// `NotAcceptable` if `Accept` allows no supported format, `BadRequest` for a malformed parameter of a Table.
    pub(super) fn negotiate(request: &ObjectRequest) -> Result<Self, ApiError> {
        let kind = subresource_kind(request.route.kind, &request.route.subresource);
        let format = accept::objects(&request.headers, table::has_table(kind))?;
        Ok(Self {
            format,
            include: match format.form {
                Form::Table(_) => include(&request.query)?,
                _ => Include::Nothing,
            },
            pretty: response::is_pretty(&request.query, &request.headers),
        })
    }

    /// Checks that a stream of events can be encoded.
    ///
    /// # Errors
    /// `NotAcceptable` for YAML.
    pub(super) fn check_stream(&self) -> Result<(), ApiError> {
        match self.format.media {
            Media::Yaml => Err(accept::stream_not_acceptable()),
            _ => Ok(()),
        }
    }

    /// Encodes a `Status`, which has no other form.
    pub(super) fn status(&self, status: &Status) -> Result<ApiResponse, ApiError> {
        encoded_status(status, self.format.media, self.pretty)
    }

    fn text(&self, json: Vec<u8>) -> Result<ApiResponse, ApiError> {
        text(json, self.format.media, self.pretty)
    }

    fn document(&self, document: &Value) -> Result<ApiResponse, ApiError> {
        self.text(document.to_string().into())
    }

    /// Encodes an object.
    ///
    /// # Errors
    /// `NotAcceptable` if the client accepts only the metadata of a list.
    pub(super) fn object(
        &self,
        response: registry::ObjectResponse,
    ) -> Result<ApiResponse, ApiError> {
        let kind = response.kind;
        let Format { media, form } = self.format;
        match (form, media) {
            (Form::Whole, Media::Protobuf) => {
                Ok(protobuf(&kind.api_version(), &kind.kind, &response.raw))
            }
            (Form::Metadata(version), Media::Protobuf) => {
                let raw = partial(&response.raw)?;
                let version = meta_version(version);
                Ok(protobuf(&version, table::PARTIAL, &raw))
            }
            (Form::MetadataList(_), _) => Err(not_a_list(kind)),
            (Form::Whole, _) => self.text(response.into_object()?.to_json()),
            _ => self.document(&self.converted(&*response.into_object()?, true)),
        }
    }

    /// Converts an object to a Table of one row, or to its metadata.
    fn converted(&self, object: &dyn Object, with_columns: bool) -> Value {
        match self.format.form {
            Form::Table(version) => {
                let list = ListMeta {
                    resource_version: object.meta().resource_version.clone(),
                    ..Default::default()
                };
                let row = table::row(object, self.include, version, Timestamp::now());
                let columns = with_columns.then(|| table::columns(object.kind()));
                table::table(version, &list, columns.into(), vec![row])
            }
            Form::Metadata(version) | Form::MetadataList(version) => {
                table::partial(object.meta(), version)
            }
            Form::Whole => table::json_of(object),
        }
    }

    /// Encodes a list of encoded objects.
    ///
    /// # Errors
    /// `NotAcceptable` if the client accepts only the metadata of one object.
    pub(super) fn list(
        &self,
        kind: &'static Kind,
        metadata: ListMeta,
        items: Vec<Bytes>,
    ) -> Result<ApiResponse, ApiError> {
        let Format { media, form } = self.format;
        match (form, media) {
            (Form::Whole, Media::Protobuf) => Ok(protobuf_list(
                kind.api_version(),
                &kind.list_kind(),
                metadata,
                items,
            )),
            (Form::MetadataList(version), Media::Protobuf) => {
                let items = items.iter().map(|raw| partial(raw));
                let items = items.collect::<Result<_, _>>()?;
                let name = table::PARTIAL_LIST;
                Ok(protobuf_list(meta_version(version), name, metadata, items))
            }
            (Form::Metadata(_), _) => Err(is_a_list(kind)),
            (Form::Whole, _) => {
                let objects = items.iter().map(|raw| kind.decode(raw));
                self.text(json_list(kind, &metadata, objects)?)
            }
            _ => self.document(&self.converted_list(kind, &metadata, &items)?),
        }
    }

    /// Converts a list to a Table, or to its metadata.
    fn converted_list(
        &self,
        kind: &'static Kind,
        metadata: &ListMeta,
        items: &[Bytes],
    ) -> Result<Value, ApiError> {
        let now = Timestamp::now();
        let objects = items.iter().map(|raw| kind.decode(raw));
        let (Form::Table(version) | Form::Metadata(version) | Form::MetadataList(version)) =
            self.format.form
        else {
            return Err(is_a_list(kind));
        };
        if let Form::Table(_) = self.format.form {
            let rows = objects.map(|object| Ok(table::row(&*object?, self.include, version, now)));
            let rows = rows.collect::<Result<_, ApiError>>()?;
            return Ok(table::table(version, metadata, table::columns(kind), rows));
        }
        let items = objects.map(|object| Ok(table::partial(object?.meta(), version)));
        Ok(json!({
            "kind": table::PARTIAL_LIST,
            "apiVersion": meta_version(version),
            "metadata": metadata,
            "items": items.collect::<Result<Value, ApiError>>()?,
        }))
    }

    /// Returns the content type of a stream of events.
    pub(super) fn stream_type(&self) -> HeaderValue {
        HeaderValue::from_static(match self.format.media {
            Media::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            _ => "application/json",
        })
    }

    /// Encodes a watch event with an encoded object. Of a stream of Tables, only the first has the definitions of the
    /// columns.
    pub(super) fn event(
        &self,
        name: &str,
        kind: &'static Kind,
        raw: &[u8],
        first: bool,
    ) -> Result<Bytes, ApiError> {
        let Format { media, form } = self.format;
        Ok(match (form, media) {
            (Form::Whole, Media::Protobuf) => framed(
                name,
                envelope::write(&kind.api_version(), &kind.kind, raw, None),
            ),
            (Form::Metadata(version) | Form::MetadataList(version), Media::Protobuf) => framed(
                name,
                envelope::write(&meta_version(version), table::PARTIAL, &partial(raw)?, None),
            ),
            (Form::Whole, _) => line(name, &kind.decode(raw)?.to_json()),
            _ => {
                let object = self.converted(&*kind.decode(raw)?, first);
                line(name, object.to_string().as_bytes())
            }
        })
    }

    /// Encodes the `ERROR` event that ends a stream.
    pub(super) fn error(&self, error: &ApiError) -> Bytes {
        let status = error.to_status();
        match self.format.media {
            Media::Protobuf => framed(
                "ERROR",
                envelope::write("v1", "Status", &status.encode_to_vec(), None),
            ),
            _ => line("ERROR", &status.to_json()),
        }
    }
}

/// Encodes a `Status`.
pub(super) fn encoded_status(
    status: &Status,
    media: Media,
    pretty: bool,
) -> Result<ApiResponse, ApiError> {
    match media {
        Media::Protobuf => Ok(protobuf("v1", "Status", &status.encode_to_vec())),
        _ => text(status.to_json(), media, pretty),
    }
}

/// Encodes JSON as it is, or converted to YAML.
pub(super) fn text(json: Vec<u8>, media: Media, pretty: bool) -> Result<ApiResponse, ApiError> {
    Ok(match media {
        Media::Yaml => {
            ApiResponse::new(HeaderValue::from_static(media.name()), yaml::write(&json)?)
        }
        _ => ApiResponse::json(json, pretty),
    })
}

/// Returns what a row of a Table has beside its cells.
fn include(query: &Query) -> Result<Include, ApiError> {
    match query.get("includeObject") {
        None | Some("Metadata") => Ok(Include::Metadata),
        Some("Object") => Ok(Include::Object),
        Some("None") => Ok(Include::Nothing),
        Some(other) => {
            let message = format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            );
            Err(ApiError::new(Reason::BadRequest, message))
        }
    }
}

fn meta_version(version: &str) -> String {
    format!("meta.k8s.io/{version}")
}

/// Returns the encoded metadata of an encoded object. In every kind it is the first field.
fn partial(raw: &[u8]) -> Result<Bytes, ApiError> {
    let partial = PartialObjectMetadata::decode(raw);
    let partial = partial.map_err(|error| {
        let message = format!("decoding the metadata of an object failed: {error}");
        ApiError::new(Reason::InternalError, message)
    })?;
    Ok(partial.encode_to_vec().into())
}

fn is_a_list(kind: &Kind) -> ApiError {
    let list = kind.list_kind();
    let message =
        format!("you requested PartialObjectMetadata, but the requested object is a list ({list})");
    ApiError::new(Reason::NotAcceptable, message)
}

fn not_a_list(kind: &Kind) -> ApiError {
    let message = format!(
        "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
        kind.kind
    );
    ApiError::new(Reason::NotAcceptable, message)
}

/// Returns a response with an encoded message in Kubernetes' envelope.
pub(super) fn protobuf(api_version: &str, kind: &str, raw: &[u8]) -> ApiResponse {
    let body = envelope::write(api_version, kind, raw, None);
    ApiResponse::new(HeaderValue::from_static(accept::PROTOBUF), body)
}

fn protobuf_list(
    api_version: String,
    kind: &str,
    metadata: ListMeta,
    items: Vec<Bytes>,
) -> ApiResponse {
    let list = EncodedList {
        metadata: Some(metadata),
        items,
    };
    protobuf(&api_version, kind, &list.encode_to_vec())
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
