//! The bodies of requests and responses, which are encoded as JSON only when an event is written.

use bytes::Bytes;
use prost::Message as _;
use serde_json::{Map, Value, json};
use setpoint_codec::{EncodedList, Kind, Object, envelope};
use setpoint_proto::meta::{ListMeta, PartialObjectMetadata, Status};

const METADATA: &str = "metadata";
const MANAGED: &str = "managedFields";

/// A body.
#[derive(Debug)]
pub enum Body {
    /// An object, and the size in bytes that it was read from.
    Object(Box<dyn Object>, usize),
    /// An object of a kind in protobuf.
    Message(&'static Kind, Bytes),
    /// A list of objects of a kind in protobuf.
    Messages(&'static Kind, Vec<Bytes>),
    /// A document in JSON.
    Json(Bytes),
    /// Kubernetes' envelope with an object or a list of a kind, or with a `Status`.
    Envelope(&'static Kind, Bytes),
    /// A patch, and its size in bytes.
    Value(Value, usize),
    /// An error.
    Status(Box<Status>),
}

impl Body {
    /// Returns its size in bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Object(_, size) | Self::Value(_, size) => *size,
            Self::Message(_, bytes) | Self::Json(bytes) | Self::Envelope(_, bytes) => bytes.len(),
            Self::Messages(_, items) => items.iter().map(Bytes::len).sum(),
            Self::Status(status) => status.encoded_len(),
        }
    }

    /// Returns the body in JSON on one line; `None` if it cannot be decoded.
    pub(crate) fn json(&self, omits_managed_fields: bool) -> Option<String> {
        match self {
            Self::Object(object, _) => text(of_object(object.clone(), omits_managed_fields)),
            Self::Message(kind, raw) => text(message(kind, raw, omits_managed_fields)?),
            Self::Messages(kind, items) => {
                let metadata = ListMeta::default();
                list(kind, &metadata, items, omits_managed_fields)
            }
            Self::Json(document) if !omits_managed_fields => one_line(document),
            Self::Json(document) => {
                let document = serde_json::from_slice(document).ok()?;
                Some(without_managed_fields(document).to_string())
            }
            Self::Envelope(kind, bytes) => in_envelope(kind, bytes, omits_managed_fields),
            Self::Value(value, _) => Some(value.to_string()),
            Self::Status(status) => text(status.to_json()),
        }
    }
}

fn text(json: Vec<u8>) -> Option<String> {
    String::from_utf8(json).ok()
}

fn of_object(mut object: Box<dyn Object>, omits_managed_fields: bool) -> Vec<u8> {
    if omits_managed_fields {
        object.meta_mut().managed_fields.clear();
    }
    object.to_json()
}

fn message(kind: &'static Kind, raw: &[u8], omits_managed_fields: bool) -> Option<Vec<u8>> {
    let object = kind.decode(raw).ok()?;
    Some(of_object(object, omits_managed_fields))
}

fn list(
    kind: &'static Kind,
    metadata: &ListMeta,
    items: &[Bytes],
    omits_managed_fields: bool,
) -> Option<String> {
    let (name, version) = (json!(kind.list_kind()), json!(kind.api_version()));
    let metadata = json!(metadata);
    let mut list =
        format!(r#"{{"kind":{name},"apiVersion":{version},"metadata":{metadata},"items":["#);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            list.push(',');
        }
        list += &text(message(kind, item, omits_managed_fields)?)?;
    }
    list += "]}";
    Some(list)
}

fn in_envelope(kind: &'static Kind, bytes: &Bytes, omits_managed_fields: bool) -> Option<String> {
    let found = envelope::read(bytes).ok()?;
    if found.kind == "Status" {
        return text(Status::decode(found.raw.clone()).ok()?.to_json());
    }
    if found.kind == kind.list_kind() {
        let read = EncodedList::decode(found.raw.clone()).ok()?;
        let metadata = read.metadata.unwrap_or_default();
        return list(kind, &metadata, &read.items, omits_managed_fields);
    }
    if found.kind == kind.kind {
        return text(message(kind, &found.raw, omits_managed_fields)?);
    }
    let metadata = |raw: Bytes| {
        let mut meta = PartialObjectMetadata::decode(raw).ok()?.metadata;
        if omits_managed_fields {
            meta.managed_fields.clear();
        }
        Some(json!(meta))
    };
    let (name, version) = (&found.kind, &found.api_version);
    if !name.ends_with("List") {
        let meta = metadata(found.raw.clone())?;
        return Some(json!({ "kind": name, "apiVersion": version, METADATA: meta }).to_string());
    }
    let read = EncodedList::decode(found.raw.clone()).ok()?;
    let items = read
        .items
        .into_iter()
        .map(|raw| Some(json!({ METADATA: metadata(raw)? })));
    let items = items.collect::<Option<Vec<_>>>()?;
    let of_list = read.metadata.unwrap_or_default();
    let list = json!({ "kind": name, "apiVersion": version, METADATA: of_list, "items": items });
    Some(list.to_string())
}

/// Returns JSON without line breaks and spaces between its parts. The order of fields stays.
fn one_line(json: &[u8]) -> Option<String> {
    let mut written = Vec::with_capacity(json.len());
    let mut reader = serde_json::Deserializer::from_slice(json);
    let mut writer = serde_json::Serializer::new(&mut written);
    serde_transcode::transcode(&mut reader, &mut writer).ok()?;
    reader.end().ok()?;
    text(written)
}

/// Removes the managed fields of an object, of the items of a list, and of the objects of a Table.
fn without_managed_fields(mut document: Value) -> Value {
    let remove = |fields: &mut Map<String, Value>| {
        if let Some(Value::Object(metadata)) = fields.get_mut(METADATA) {
            metadata.remove(MANAGED);
        }
    };
    let Value::Object(fields) = &mut document else {
        return document;
    };
    remove(fields);
    if let Some(Value::Array(items)) = fields.get_mut("items") {
        items
            .iter_mut()
            .filter_map(Value::as_object_mut)
            .for_each(remove);
    }
    if let Some(Value::Array(rows)) = fields.get_mut("rows") {
        let objects = rows.iter_mut().filter_map(|row| row.get_mut("object"));
        objects.filter_map(Value::as_object_mut).for_each(remove);
    }
    document
}

#[cfg(test)]
mod tests {
    use setpoint_codec::kind_of;
    use setpoint_proto::core::ConfigMap;
    use setpoint_proto::meta::ManagedFieldsEntry;

    use super::*;

    fn config_map() -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.name = "a".into();
        object.metadata.managed_fields = vec![ManagedFieldsEntry {
            manager: "test".into(),
            ..ManagedFieldsEntry::default()
        }];
        object
    }

    /// Returns the managers in a body with and without managed fields.
    fn managers(body: &Body) -> [bool; 2] {
        [false, true].map(|omits| {
            let json = body.json(omits).unwrap();
            assert!(!json.contains('\n'), "{json}");
            let value: Value = serde_json::from_str(&json).unwrap();
            assert!(json.contains(r#""name":"a""#), "{value}");
            json.contains(MANAGED)
        })
    }

    #[test]
    fn managed_fields_are_omitted_from_every_form() {
        let (object, kind) = (config_map(), kind_of::<ConfigMap>());
        let raw = Bytes::from(object.encode_to_vec());
        let json = kind.decode(&raw).unwrap().to_document();
        let list = EncodedList {
            metadata: None,
            items: vec![raw.clone()],
        };
        let envelope = |name: &str, raw: &[u8]| envelope::write("v1", name, raw, None);
        let list_in_json = json!({ "kind": "List", "items": [json] });
        let table = json!({ "kind": "Table", "rows": [{ "object": json }] });
        let pretty = |value: &Value| Body::Json(format!("{value:#}\n").into());
        for body in [
            Body::Object(kind.decode(&raw).unwrap(), 1),
            Body::Message(kind, raw.clone()),
            Body::Messages(kind, vec![raw.clone()]),
            Body::Envelope(kind, envelope("ConfigMap", &raw)),
            Body::Envelope(kind, envelope("ConfigMapList", &list.encode_to_vec())),
            Body::Envelope(kind, envelope("PartialObjectMetadata", &raw)),
            Body::Envelope(
                kind,
                envelope("PartialObjectMetadataList", &list.encode_to_vec()),
            ),
            pretty(&json),
            pretty(&list_in_json),
            pretty(&table),
        ] {
            assert_eq!(managers(&body), [true, false], "{body:?}");
        }
    }

    #[test]
    fn what_is_not_json_has_no_body() {
        assert_eq!(Body::Json("{\"a\":".into()).json(false), None);
        assert_eq!(Body::Json("{} {}".into()).json(false), None);
        assert_eq!(Body::Json("no".into()).json(true), None);
        let kind = kind_of::<ConfigMap>();
        assert_eq!(Body::Envelope(kind, "no".into()).json(false), None);
        assert_eq!(Body::Message(kind, "\u{ff}".into()).json(false), None);
    }
}
