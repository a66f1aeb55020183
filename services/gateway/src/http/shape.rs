//! Writes objects, lists and watch events in the form that the client asked for.

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use prost::Message;
use serde_json::{Value, json};
use setpoint_codec::{Kind, Object, envelope};
use setpoint_proto::meta::{self, ListMeta, RawExtension};
use setpoint_proto::{ApiError, Reason};

use super::accept::{self, Form, PROTOBUF};
use super::query::Query;
use super::reply::{self, Reply};
use super::table::{self, Include};
use super::yaml::{self, YAML};
use crate::registry;

/// Everything that the form of an answer depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    form: Form,
    include: Include,
    pretty: bool,
}

/// Any kind's list on the wire, its items already encoded.
#[derive(Clone, PartialEq, Message)]
struct EncodedList {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ListMeta>,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    items: Vec<Bytes>,
}

impl Shape {
    /// What `Accept` and the query ask for.
    pub(super) fn asked(query: &Query, headers: &HeaderMap) -> Result<Self, ApiError> {
        let include = match query.get("includeObject") {
            None | Some("Metadata") => Include::Metadata,
            Some("Object") => Include::Object,
            Some("None") => Include::Nothing,
            Some(other) => return Err(unknown_include(other)),
        };
        Ok(Self {
            form: accept::objects(headers)?,
            include,
            pretty: reply::is_pretty(query, headers),
        })
    }

    /// Whether it is one that a stream of events can have.
    pub(super) fn check_stream(&self) -> Result<(), ApiError> {
        match self.form {
            Form::Yaml => Err(accept::not_acceptable()),
            _ => Ok(()),
        }
    }

    /// JSON, or the same in YAML.
    pub(super) fn text(&self, json: Vec<u8>) -> Result<Reply, ApiError> {
        Ok(match self.form {
            Form::Yaml => Reply::new(HeaderValue::from_static(YAML), yaml::write(&json)?),
            _ => Reply::json(json, self.pretty),
        })
    }

    /// One object. What is never stored has no table and no metadata of its own, and is written whole.
    pub(super) fn response(&self, response: registry::ObjectResponse) -> Result<Reply, ApiError> {
        let kind = response.kind;
        Ok(match self.form {
            Form::Protobuf => protobuf(kind, &kind.kind, &response.raw),
            Form::Table(_) | Form::Partial if kind.is_stored() => {
                reply::document(&self.reshaped(&*response.into_object()?), self.pretty)
            }
            _ => self.text(response.into_object()?.to_json())?,
        })
    }

    /// The object as a table of one row, or as its metadata.
    fn reshaped(&self, object: &dyn Object) -> Value {
        match self.form {
            Form::Table(version) => {
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

    /// A page of objects, given encoded.
    pub(super) fn list(
        &self,
        kind: &'static Kind,
        metadata: ListMeta,
        items: Vec<Bytes>,
    ) -> Result<Reply, ApiError> {
        let objects = items.iter().map(|raw| kind.decode(raw));
        Ok(match self.form {
            Form::Protobuf => {
                let list = EncodedList {
                    metadata: Some(metadata),
                    items,
                };
                protobuf(kind, &kind.list_kind(), &list.encode_to_vec())
            }
            Form::Table(version) => {
                let now = Timestamp::now();
                let rows = objects.map(|object| Ok(table::row(&*object?, self.include, now)));
                let rows = rows.collect::<Result<_, ApiError>>()?;
                reply::document(&self.table(kind, version, &metadata, rows), self.pretty)
            }
            Form::Partial => {
                let items = objects.map(|object| Ok(table::partial(&table::json_of(&*object?))));
                let document = json!({
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": metadata,
                    "items": items.collect::<Result<Value, ApiError>>()?,
                });
                reply::document(&document, self.pretty)
            }
            _ => self.text(json_list(kind, &metadata, objects)?)?,
        })
    }

    /// The type of a stream of events.
    pub(super) fn stream_type(&self) -> HeaderValue {
        HeaderValue::from_static(match self.form {
            Form::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            _ => "application/json",
        })
    }

    /// One event of a watch, its object given encoded.
    pub(super) fn event(
        &self,
        name: &str,
        kind: &'static Kind,
        raw: &[u8],
    ) -> Result<Bytes, ApiError> {
        Ok(match self.form {
            Form::Protobuf => framed(
                name,
                envelope::write(&kind.api_version(), &kind.kind, raw, None),
            ),
            Form::Table(_) | Form::Partial => line(
                name,
                self.reshaped(&*kind.decode(raw)?).to_string().as_bytes(),
            ),
            _ => line(name, &kind.decode(raw)?.to_json()),
        })
    }

    /// The event that says why a stream ends.
    pub(super) fn error(&self, error: &ApiError) -> Bytes {
        let status = error.to_status();
        match self.form {
            Form::Protobuf => framed(
                "ERROR",
                envelope::write("v1", "Status", &status.encode_to_vec(), None),
            ),
            _ => line("ERROR", &status.to_json()),
        }
    }
}

fn protobuf(of: &Kind, kind: &str, raw: &[u8]) -> Reply {
    let body = envelope::write(&of.api_version(), kind, raw, None);
    Reply::new(HeaderValue::from_static(PROTOBUF), body)
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

/// In protobuf each event stands behind its length in four bytes, the greatest first.
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
