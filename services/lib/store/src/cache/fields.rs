//! Fields of encoded objects for field selectors, read without decoding the rest of the object.

use std::borrow::Cow;

use prost::bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};
use prost_reflect::Kind as Type;
use serde_json::Value as Json;
use setpoint_codec::Kind;

/// The field of a `setpoint.v1.CustomObject` with the JSON of the custom fields.
const CONTENT: u32 = 2;

/// A scalar field, by the field numbers of its path.
#[derive(Clone, Debug)]
pub(super) struct Field {
    numbers: Vec<u32>,
    scalar: Scalar,
}

#[derive(Clone, Debug)]
enum Scalar {
    Text,
    Boolean,
    Integer,
    /// A scalar of any type in encoded JSON, by its JSON pointer.
    Json(String),
}

/// An encoded value.
#[derive(Clone, Copy)]
enum Value<'a> {
    Bytes(&'a [u8]),
    Number(u64),
}

impl Field {
    /// Returns the field at a path of JSON names; `None` if it does not exist or is not a singular scalar.
    pub fn resolve(kind: &Kind, path: &str) -> Option<Self> {
        let custom = || kind.is_custom().then(|| Self::in_content(path));
        Self::in_message(kind, path).or_else(custom)
    }

    fn in_content(path: &str) -> Self {
        Self {
            numbers: vec![CONTENT],
            scalar: Scalar::Json(format!("/{}", path.replace('.', "/"))),
        }
    }

    fn in_message(kind: &Kind, path: &str) -> Option<Self> {
        let mut message = Some(kind.message.clone());
        let mut numbers = Vec::new();
        let mut scalar = None;
        for name in path.split('.') {
            let field = message?
                .get_field_by_json_name(name)
                .filter(|field| !field.is_list())?;
            numbers.push(field.number());
            scalar = match field.kind() {
                Type::String => Some(Scalar::Text),
                Type::Bool => Some(Scalar::Boolean),
                Type::Int32 | Type::Int64 => Some(Scalar::Integer),
                _ => None,
            };
            message = field.kind().as_message().cloned();
        }
        scalar.map(|scalar| Self { numbers, scalar })
    }

    /// Reads the field from an encoded object, in the text form of selectors.
    pub fn read<'a>(&self, raw: &'a [u8]) -> Cow<'a, str> {
        match (&self.scalar, find(raw, &self.numbers)) {
            (Scalar::Text, Some(Value::Bytes(text))) => String::from_utf8_lossy(text),
            (Scalar::Text, _) => "".into(),
            (Scalar::Boolean, Some(Value::Number(1..))) => "true".into(),
            (Scalar::Boolean, _) => "false".into(),
            (Scalar::Integer, Some(Value::Number(number))) => {
                number.cast_signed().to_string().into()
            }
            (Scalar::Integer, _) => "0".into(),
            (Scalar::Json(pointer), Some(Value::Bytes(json))) => scalar_of(json, pointer).into(),
            (Scalar::Json(_), _) => "".into(),
        }
    }
}

/// Returns the text of a scalar in a JSON document; empty if it is not set.
fn scalar_of(json: &[u8], pointer: &str) -> String {
    let document: Json = serde_json::from_slice(json).unwrap_or_default();
    match document.pointer(pointer) {
        Some(Json::String(text)) => text.clone(),
        Some(scalar @ (Json::Bool(_) | Json::Number(_))) => scalar.to_string(),
        _ => String::new(),
    }
}

/// Finds the last value at a path: protobuf merges messages that occur twice.
fn find<'a>(mut raw: &'a [u8], path: &[u32]) -> Option<Value<'a>> {
    let (&first, rest) = path.split_first()?;
    let mut found = None;
    while raw.has_remaining() {
        let (number, value) = next(&mut raw)?;
        match value {
            Some(Value::Bytes(inner)) if number == first && !rest.is_empty() => {
                found = find(inner, rest).or(found);
            }
            Some(value) if number == first => found = Some(value),
            _ => {}
        }
    }
    found
}

/// Reads the next field; its value is `None` for the fixed-width types, which no selector names.
fn next<'a>(raw: &mut &'a [u8]) -> Option<(u32, Option<Value<'a>>)> {
    let (number, wire) = decode_key(raw).ok()?;
    let fixed = match wire {
        WireType::Varint => return Some((number, Some(Value::Number(decode_varint(raw).ok()?)))),
        WireType::LengthDelimited => {
            let len = usize::try_from(decode_varint(raw).ok()?).ok()?;
            let (inner, rest) = raw.split_at_checked(len)?;
            *raw = rest;
            return Some((number, Some(Value::Bytes(inner))));
        }
        WireType::SixtyFourBit => 8,
        WireType::ThirtyTwoBit => 4,
        WireType::StartGroup | WireType::EndGroup => return None,
    };
    *raw = raw.get(fixed..)?;
    Some((number, None))
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use setpoint_codec::{Selectable, envelope, kinds};
    use setpoint_proto::apps::ReplicaSet;
    use setpoint_proto::core::{Node, Pod};

    use super::*;

    fn read(resource: &str, path: &str, raw: &[u8]) -> String {
        let kind = kinds().by_resource(resource).unwrap();
        Field::resolve(kind, path).unwrap().read(raw).into_owned()
    }

    #[test]
    fn every_field_that_the_options_name_exists_in_its_message() {
        for kind in kinds().served() {
            let definition = kind.definition();
            let selectable = definition.selectable.iter().flat_map(|field| &field.paths);
            for path in selectable.chain(&kind.indexed).chain(&kind.holder) {
                let exists = Field::resolve(kind.stored(), path).is_some();
                assert!(exists, "{}: {path}", kind.kind);
            }
        }
    }

    #[test]
    fn the_indexed_field_is_selectable_by_its_own_name() {
        for kind in kinds().iter() {
            let Some(indexed) = &kind.indexed else {
                continue;
            };
            let same = |field: &Selectable| field.name == *indexed && field.paths == [&**indexed];
            assert!(
                kind.definition().selectable.iter().any(same),
                "{}",
                kind.kind
            );
        }
    }

    #[test]
    fn fields_are_read_from_the_encoded_object() {
        let mut pod = Pod::default();
        pod.spec.node_name = "node-1".into();
        pod.status.phase = "Running".into();
        let raw = envelope::with_revision(&pod.encode_to_vec().into(), "7");
        assert_eq!(read("pods", "spec.nodeName", &raw), "node-1");
        assert_eq!(read("pods", "status.phase", &raw), "Running");
        assert_eq!(read("pods", "status.podIP", &raw), "");
        assert_eq!(read("pods", "metadata.resourceVersion", &raw), "7");
    }

    #[test]
    fn numbers_and_booleans_read_as_kubernetes_formats_them() {
        let mut node = Node::default();
        assert_eq!(
            read("nodes", "spec.unschedulable", &node.encode_to_vec()),
            "false"
        );
        node.spec.unschedulable = true;
        assert_eq!(
            read("nodes", "spec.unschedulable", &node.encode_to_vec()),
            "true"
        );
        let mut set = ReplicaSet::default();
        assert_eq!(
            read("replicasets.apps", "status.replicas", &set.encode_to_vec()),
            "0"
        );
        set.status.replicas = 3;
        assert_eq!(
            read("replicasets.apps", "status.replicas", &set.encode_to_vec()),
            "3"
        );
    }

    #[test]
    fn a_field_of_malformed_bytes_reads_as_unset() {
        assert_eq!(read("pods", "spec.nodeName", &[0x1a, 0x7f, 1, 2]), "");
        assert_eq!(read("pods", "spec.nodeName", &[0xff]), "");
    }
}
