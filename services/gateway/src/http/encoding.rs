//! The encodings of messages, lists and watch events.

use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderValue;
use prost::Message as _;
use serde_json::json;
use setpoint_codec::{EncodedList, Kind, Object, envelope};
use setpoint_proto::meta::{self, ListMeta, PartialObjectMetadata, RawExtension, Status};
use setpoint_proto::{ApiError, Reason};

use super::accept::{Media, PROTOBUF};
use super::ordered;
use super::response::ApiResponse;
use super::yaml;

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

/// Encodes JSON unchanged, or converted to YAML.
pub(super) fn text(json: Vec<u8>, media: Media, pretty: bool) -> Result<ApiResponse, ApiError> {
    Ok(match media {
        Media::Yaml => {
            ApiResponse::new(HeaderValue::from_static(media.name()), yaml::write(&json)?)
        }
        _ => ApiResponse::json(json, pretty),
    })
}

/// Returns the encoded metadata of an encoded object. In every kind it is the first field.
pub(super) fn partial(raw: &[u8]) -> Result<Bytes, ApiError> {
    let partial = PartialObjectMetadata::decode(raw);
    let partial = partial.map_err(|error| {
        let message = format!("decoding the metadata of an object failed: {error}");
        ApiError::new(Reason::InternalError, message)
    })?;
    Ok(partial.encode_to_vec().into())
}

/// Returns a response with an encoded message in Kubernetes' envelope.
pub(super) fn protobuf(api_version: &str, kind: &str, raw: &[u8]) -> ApiResponse {
    let body = envelope::write(api_version, kind, raw, None);
    ApiResponse::new(HeaderValue::from_static(PROTOBUF), body)
}

/// Returns a response with a list of encoded objects in Kubernetes' envelope.
pub(super) fn protobuf_list(
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

/// Returns a list in JSON.
pub(super) fn json_list<E>(
    kind: &Kind,
    metadata: &ListMeta,
    objects: impl Iterator<Item = Result<Box<dyn Object>, E>>,
) -> Result<Vec<u8>, E> {
    let (list, version) = (json!(kind.list_kind()), json!(kind.api_version()));
    let head = format!(r#"{{"kind":{list},"apiVersion":{version},"metadata":"#);
    let mut body = head.into_bytes();
    body.extend(ordered::json(&json!(metadata), &ordered::METADATA));
    body.extend_from_slice(br#","items":["#);
    for (index, object) in objects.enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend(object?.to_json_item());
    }
    body.extend_from_slice(b"]}");
    Ok(body)
}

/// Returns a watch event in JSON.
pub(super) fn line(name: &str, json: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(json.len() + 40);
    line.put_slice(format!(r#"{{"type":"{name}","object":"#).as_bytes());
    line.put_slice(json);
    line.put_slice(b"}\n");
    line.freeze()
}

/// The bytes of the length before a protobuf event.
pub(super) const LENGTH_PREFIX: usize = size_of::<u32>();

/// Returns a protobuf event, preceded by its length as a big-endian `u32`.
pub(super) fn framed(name: &str, object: Bytes) -> Bytes {
    let event = meta::WatchEvent {
        r#type: name.into(),
        object: RawExtension { raw: object },
    };
    let mut frame = BytesMut::with_capacity(event.encoded_len() + LENGTH_PREFIX);
    frame.put_u32(event.encoded_len() as u32);
    frame.put_slice(&event.encode_to_vec());
    frame.freeze()
}
