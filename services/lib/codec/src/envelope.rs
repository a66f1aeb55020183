//! The format of values in etcd: `k8s\0` followed by a `runtime.Unknown`, as Kubernetes writes it.
//!
//! The cause of the write is field 15 of the `Unknown`, and the [`Identity`] of the write field 14. Kubernetes' tools
//! skip both as unknown fields.
//!
//! 2026-11: we chose fields of the envelope over annotations for cause and identity, because what clients cannot see
//! they cannot change, copy or be woken by. Wrong if tools that rewrite values (`etcdctl`, a storage migration) had to
//! keep the cause.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};
use setpoint_proto::Cause;
use setpoint_proto::runtime::{TypeMeta, Unknown};

use crate::{Object, custom};

/// The prefix of every envelope.
pub const MAGIC: &[u8] = b"k8s\0";

/// The content type of objects of custom kinds.
const JSON: &str = "application/json";

/// An error in reading an envelope.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The prefix is missing.
    #[error("the value does not start with the bytes k8s\\0")]
    Magic,
    /// The bytes after the prefix are not a `runtime.Unknown`.
    #[error("the value is not a runtime.Unknown")]
    Malformed(#[from] prost::DecodeError),
    /// The object of a custom kind is malformed.
    #[error("the value is not the JSON of an object")]
    Json(#[from] serde_json::Error),
    /// The object is neither encoded in protobuf nor in JSON.
    #[error(
        "the value's content type {content_type:?} with encoding {encoding:?} is not supported"
    )]
    Content {
        /// The content type.
        content_type: String,
        /// The content encoding.
        encoding: String,
    },
}

/// The identity of a write: random bits, by which its outcome is known if the answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(pub u128);

impl Identity {
    /// The number of the field, in an envelope and in the message that says who deleted an object.
    const FIELD: u32 = 14;
    /// The size of the field.
    const LEN: usize = 2 + size_of::<u128>();

    /// Returns an encoded message with this identity as its last field.
    pub fn append_to(self, message: &[u8]) -> Bytes {
        let mut out = BytesMut::with_capacity(message.len() + Self::LEN);
        out.put_slice(message);
        put_field(Self::FIELD, &self.0.to_be_bytes(), &mut out);
        out.freeze()
    }

    /// Returns whether an encoded message has this identity as its last field.
    pub fn is_in(self, message: &[u8]) -> bool {
        message.ends_with(&self.append_to(&[]))
    }
}

/// The encoded object, its kind, and the cause of its last write.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// For example `apps/v1`.
    pub api_version: String,
    /// For example `Deployment`.
    pub kind: String,
    /// The protobuf encoding of the object.
    pub raw: Bytes,
    /// The cause of the last write, if the writer gave one.
    pub cause: Option<Cause>,
}

/// Reads an envelope without decoding the object; one in JSON is encoded as a `setpoint.v1.CustomObject`.
///
/// # Errors
/// If the bytes are not an envelope, or the object is neither encoded in protobuf nor in JSON.
pub fn read(value: &Bytes) -> Result<Envelope, Error> {
    if !value.starts_with(MAGIC) {
        return Err(Error::Magic);
    }
    let unknown = Unknown::decode(value.slice(MAGIC.len()..))?;
    let TypeMeta { api_version, kind } = unknown.type_meta;
    let raw = match (
        unknown.content_type.as_str(),
        unknown.content_encoding.as_str(),
    ) {
        ("" | "application/vnd.kubernetes.protobuf", "") => unknown.raw,
        (JSON, "") => custom::encode_json(&api_version, &kind, &unknown.raw)?,
        _ => {
            return Err(Error::Content {
                content_type: unknown.content_type,
                encoding: unknown.content_encoding,
            });
        }
    };
    Ok(Envelope {
        api_version,
        kind,
        raw,
        cause: unknown.cause,
    })
}

/// Returns the envelope of an object as it is stored: in protobuf or, if it is of a custom kind, in JSON. `raw` is its
/// encoding.
pub fn of_object(object: &dyn Object, raw: &Bytes, cause: Option<&Cause>) -> Bytes {
    let kind = object.kind();
    if !kind.is_custom() {
        return write(&kind.api_version(), &kind.kind, raw, cause);
    }
    let unknown = Unknown {
        type_meta: TypeMeta {
            api_version: kind.api_version(),
            kind: kind.kind.clone(),
        },
        raw: object.to_json().into(),
        content_type: JSON.to_owned(),
        content_encoding: String::new(),
        cause: cause.cloned(),
    };
    [MAGIC, &unknown.encode_to_vec()].concat().into()
}

/// Returns the envelope of an encoded object, in one allocation.
pub fn write(api_version: &str, kind: &str, raw: &[u8], cause: Option<&Cause>) -> Bytes {
    let type_meta = field_len(api_version.len()) + field_len(kind.len());
    let cause_len = cause.map_or(0, |cause| field_len(cause.encoded_len()));
    let len = MAGIC.len() + field_len(type_meta) + field_len(raw.len()) + cause_len;
    let mut out = BytesMut::with_capacity(len);
    out.put_slice(MAGIC);
    put_head(1, type_meta, &mut out);
    put_field(1, api_version.as_bytes(), &mut out);
    put_field(2, kind.as_bytes(), &mut out);
    put_field(2, raw, &mut out);
    if let Some(cause) = cause {
        put_head(15, cause.encoded_len(), &mut out);
        cause.encode_raw(&mut out);
    }
    debug_assert_eq!(out.len(), len);
    out.freeze()
}

/// Returns an encoded object with this `metadata.resourceVersion`, without decoding it.
///
/// Appends a second `metadata` field, which protobuf merges into the first.
pub fn with_revision(raw: &Bytes, revision: &str) -> Bytes {
    const METADATA: u32 = 1;
    const RESOURCE_VERSION: u32 = 6;
    let inner = field_len(revision.len());
    let len = raw.len() + field_len(inner);
    let mut out = BytesMut::with_capacity(len);
    out.put_slice(raw);
    put_head(METADATA, inner, &mut out);
    put_field(RESOURCE_VERSION, revision.as_bytes(), &mut out);
    debug_assert_eq!(out.len(), len);
    out.freeze()
}

/// Returns the encoded object to which [`with_revision`] appended this revision. Shares its buffer.
pub fn without_revision(raw: &Bytes, revision: &str) -> Bytes {
    let appended = field_len(field_len(revision.len()));
    raw.slice(..raw.len().saturating_sub(appended))
}

/// Returns the encoded size of a field whose number is below 16.
fn field_len(len: usize) -> usize {
    1 + encoded_len_varint(len as u64) + len
}

fn put_head(number: u32, len: usize, out: &mut BytesMut) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(len as u64, out);
}

fn put_field(number: u32, bytes: &[u8], out: &mut BytesMut) {
    put_head(number, bytes.len(), out);
    out.put_slice(bytes);
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::Pod;

    use super::*;

    fn cause() -> Cause {
        Cause {
            traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
                .parse()
                .ok(),
            writer: "replicaset-controller".to_owned(),
            term: 7,
            written_ns: 1_700_000_000_000_000_000,
            began_ns: 1_699_999_999_000_000_000,
            depth: 2,
            wanted_ns: 1_699_999_999_500_000_000,
            lease_term: Some(8),
        }
    }

    #[test]
    fn an_envelope_round_trips() {
        for cause in [None, Some(cause())] {
            let value = write("apps/v1", "Deployment", b"\x0a\x00", cause.as_ref());
            assert_eq!(
                read(&value).unwrap(),
                Envelope {
                    api_version: "apps/v1".to_owned(),
                    kind: "Deployment".to_owned(),
                    raw: Bytes::from_static(b"\x0a\x00"),
                    cause,
                }
            );
        }
    }

    #[test]
    fn the_bytes_are_the_encoding_of_runtime_unknown() {
        let raw = Bytes::from(vec![7; 300]);
        let cause = cause();
        let unknown = Unknown {
            type_meta: TypeMeta {
                api_version: "v1".to_owned(),
                kind: "Pod".to_owned(),
            },
            raw: raw.clone(),
            cause: Some(cause.clone()),
            ..Default::default()
        };
        let value = write("v1", "Pod", &raw, Some(&cause));
        assert_eq!(value[MAGIC.len()..], unknown.encode_to_vec());
    }

    /// Checks DG1.
    #[test]
    fn readers_skip_the_identity_of_the_write() {
        let plain = write("v1", "Pod", b"\x0a\x00", Some(&cause()));
        let (own, other) = (Identity(7), Identity(8));
        let value = own.append_to(&plain);
        assert!(own.is_in(&value) && !other.is_in(&value) && !own.is_in(&plain));
        assert_eq!(read(&value).unwrap(), read(&plain).unwrap());
        let tombstone = own.append_to(&cause().encode_to_vec());
        assert_eq!(Cause::decode(tombstone).unwrap(), cause());
    }

    #[test]
    fn bytes_that_are_not_an_envelope_are_rejected() {
        let json = Bytes::from_static(b"{}");
        assert!(matches!(read(&json), Err(Error::Magic)));
        assert!(matches!(
            read(&Bytes::from_static(b"k8s\0\xff")),
            Err(Error::Malformed(_))
        ));
        let unknown = Unknown {
            content_type: "application/cbor".to_owned(),
            ..Default::default()
        };
        let value = [MAGIC, &unknown.encode_to_vec()].concat().into();
        assert!(matches!(read(&value), Err(Error::Content { .. })));
    }

    #[test]
    fn with_revision_changes_only_the_resource_version() {
        let mut pod = Pod::default();
        pod.metadata.name = "web-0".to_owned();
        pod.metadata.resource_version = "1".to_owned();
        pod.spec.node_name = "n1".to_owned();
        let raw = Bytes::from(pod.encode_to_vec());
        let revised = with_revision(&raw, "123456789");
        assert_eq!(without_revision(&revised, "123456789"), raw);
        pod.metadata.resource_version = "123456789".to_owned();
        assert_eq!(Pod::decode(revised).unwrap(), pod);
    }
}
