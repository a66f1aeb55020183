//! Encodes objects, lists and watch events in the format that the client accepts.

use bytes::Bytes;
use http::HeaderValue;
use jiff::Timestamp;
use prost::Message as _;
use serde_json::{Value, json};
use setpoint_codec::rest::subresource_kind;
use setpoint_codec::{Kind, Object, envelope};
use setpoint_kinds::versions;
use setpoint_proto::meta::{ListMeta, Status};
use setpoint_proto::{ApiError, Reason};

use super::accept::{self, Form, Format, Lacking, Media};
pub(super) use super::encoding::LENGTH_PREFIX;
use super::encoding::{
    encoded_status, framed, json_list, line, partial, protobuf, protobuf_list, text,
};
use super::handler::ObjectRequest;
use super::ordered;
use super::response::{self, ApiResponse};
use super::table::{self, Include};
use crate::registry;
use crate::request::Query;

/// The format of a response, from `Accept` and the query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoder {
    format: Format,
    include: Include,
    pretty: bool,
}

impl Encoder {
    /// Returns the encoder for a request.
    ///
    /// # Errors
    /// `NotAcceptable` if `Accept` allows no supported format, `BadRequest` for a malformed parameter of a Table.
    pub(super) fn negotiate(request: &ObjectRequest) -> Result<Self, ApiError> {
        let kind = subresource_kind(request.route.kind, &request.route.subresource);
        let lacking = Lacking {
            table: !table::has_table(kind),
            protobuf: kind.is_custom(),
        };
        let format = accept::objects(&request.headers, lacking)?;
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

    /// Returns whether responses have more of an object than its metadata.
    pub(super) fn needs_content(&self) -> bool {
        !matches!(self.format.form, Form::Metadata(_) | Form::MetadataList(_))
    }

    /// Encodes a `Status`, which has no other form.
    pub(super) fn status(&self, status: &Status) -> Result<ApiResponse, ApiError> {
        encoded_status(status, self.format.media, self.pretty)
    }

    fn text(&self, json: Vec<u8>) -> Result<ApiResponse, ApiError> {
        text(json, self.format.media, self.pretty)
    }

    fn document(&self, document: &Value) -> Result<ApiResponse, ApiError> {
        self.text(ordered::json(document, &ordered::CONVERTED))
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

    /// Encodes a list of encoded stored objects, in the form of `kind`.
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
                recoded(kind, &items)?,
            )),
            (Form::MetadataList(version), Media::Protobuf) => {
                let items = items.iter().map(|raw| partial(raw));
                let items = items.collect::<Result<_, _>>()?;
                let name = table::PARTIAL_LIST;
                Ok(protobuf_list(meta_version(version), name, metadata, items))
            }
            (Form::Metadata(_), _) => Err(is_a_list(kind)),
            (Form::Whole, _) => {
                let objects = items.iter().map(|raw| versions::decode(kind, raw));
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
        let objects = items.iter().map(|raw| versions::decode(kind, raw));
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

    /// Returns whether events are texts. Otherwise each has a prefix of [`LENGTH_PREFIX`] bytes.
    pub(super) fn is_text(&self) -> bool {
        self.format.media != Media::Protobuf
    }

    /// Encodes a watch event with an encoded stored object, in the form of `kind`. Of a stream of Tables, only the
    /// first has the definitions of the columns.
    pub(super) fn event(
        &self,
        name: &str,
        kind: &'static Kind,
        raw: &Bytes,
        first: bool,
    ) -> Result<Bytes, ApiError> {
        let Format { media, form } = self.format;
        Ok(match (form, media) {
            (Form::Whole, Media::Protobuf) => framed(
                name,
                envelope::write(
                    &kind.api_version(),
                    &kind.kind,
                    &versions::recode(kind, raw)?,
                    None,
                ),
            ),
            (Form::Metadata(version) | Form::MetadataList(version), Media::Protobuf) => framed(
                name,
                envelope::write(&meta_version(version), table::PARTIAL, &partial(raw)?, None),
            ),
            (Form::Whole, _) => line(name, &versions::decode(kind, raw)?.to_json()),
            _ => {
                let object = self.converted(&*versions::decode(kind, raw)?, first);
                line(name, &ordered::json(&object, &ordered::CONVERTED))
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

/// Returns encoded stored objects in the form of `kind`.
fn recoded(kind: &'static Kind, items: &[Bytes]) -> Result<Vec<Bytes>, ApiError> {
    let items = items.iter().map(|raw| versions::recode(kind, raw));
    Ok(items.collect::<Result<_, _>>()?)
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
