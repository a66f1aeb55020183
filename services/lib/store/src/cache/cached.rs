//! Cached objects: encoded once, for all readers and watchers.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;
use prost::Message;
use setpoint_codec::{Error, Kind, Object, envelope};
use setpoint_model::{Key, Revision};
use setpoint_proto::meta::{ObjectMeta, Time};
use setpoint_proto::{Any, Cause, setpoint};

use crate::Entry;

/// An object at a revision, in one buffer.
#[derive(Debug)]
pub struct Cached {
    /// The kind.
    pub kind: &'static Kind,
    /// The namespace and name.
    pub key: Key,
    /// The revision of the last write.
    pub revision: Revision,
    /// The object in protobuf, resourceVersion included. A slice of `object`.
    pub raw: Bytes,
    /// The encoded `setpoint.v1.Object` that contains the object.
    pub object: Bytes,
    labels: OnceLock<BTreeMap<String, String>>,
}

/// The part of any object that label selectors need.
#[derive(Message)]
struct WithLabels {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Labels>,
}

#[derive(Message)]
struct Labels {
    #[prost(btree_map = "string, string", tag = "11")]
    labels: BTreeMap<String, String>,
}

/// The part of a `setpoint.v1.Object` that holds the cause.
#[derive(Message)]
struct WithCause {
    #[prost(message, optional, tag = "3")]
    cause: Option<Cause>,
}

/// The part of any object that a bookmark has: the metadata.
#[derive(Message)]
struct WithMetadata {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
}

/// The part of any object that says whether it is being deleted.
#[derive(Message)]
struct WithDeletion {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Deletion>,
}

#[derive(Message)]
struct Deletion {
    #[prost(message, optional, tag = "9")]
    deletion_timestamp: Option<Time>,
}

/// The annotation of the bookmark at the end of the initial state, for clients of Kubernetes.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

impl Cached {
    /// Reads the object in an entry of the store.
    ///
    /// # Errors
    /// If the value is not an envelope.
    pub fn read(kind: &'static Kind, key: Key, entry: &Entry) -> Result<Self, envelope::Error> {
        let envelope = envelope::read(&entry.value)?;
        Ok(Self::new(
            kind.in_version(&envelope.api_version),
            key,
            entry.revision,
            &envelope.raw,
            envelope.cause,
        ))
    }

    fn new(
        kind: &'static Kind,
        key: Key,
        revision: Revision,
        raw: &Bytes,
        cause: Option<Cause>,
    ) -> Self {
        let raw = envelope::with_revision(raw, &revision.to_string());
        Self::assemble(kind, key, revision, raw, cause)
    }

    /// Returns an object that is not stored, and so has no revision.
    pub fn computed(kind: &'static Kind, key: Key, raw: Bytes) -> Self {
        Self::assemble(kind, key, Revision::default(), raw, None)
    }

    fn assemble(
        kind: &'static Kind,
        key: Key,
        revision: Revision,
        value: Bytes,
        cause: Option<Cause>,
    ) -> Self {
        let any = Any {
            type_url: kind.type_url.clone(),
            value,
        };
        let (any_len, raw_len) = (any.encoded_len(), any.value.len());
        let object = setpoint::Object {
            object: Some(any),
            revision: match revision == Revision::default() {
                true => String::new(),
                false => revision.to_string(),
            },
            cause,
        };
        let object = Bytes::from(object.encode_to_vec());
        // The `Any` is the first field, and `value` the last field within it.
        let end = 1 + prost::length_delimiter_len(any_len) + any_len;
        Self {
            kind,
            key,
            revision,
            raw: object.slice(end - raw_len..end),
            object,
            labels: OnceLock::new(),
        }
    }

    /// Returns the object in another version of its kind; `raw` is its encoding in that version.
    #[must_use]
    pub fn in_version(&self, kind: &'static Kind, raw: &Bytes) -> Self {
        Self::new(kind, self.key.clone(), self.revision, raw, self.cause())
    }

    /// Returns the object with the revision and cause of its deletion.
    pub(super) fn at_deletion(&self, revision: Revision, cause: Option<Cause>) -> Self {
        Self::new(self.kind, self.key.clone(), revision, &self.raw, cause)
    }

    /// Returns the object of a bookmark: a kind and a revision.
    pub(super) fn bookmark(kind: &'static Kind, revision: Revision, initial: bool) -> Self {
        let end = || (INITIAL_EVENTS_END.to_owned(), "true".to_owned());
        let metadata = initial.then(|| ObjectMeta {
            annotations: [end()].into(),
            ..Default::default()
        });
        let raw = Bytes::from(WithMetadata { metadata }.encode_to_vec());
        Self::new(kind, Key::default(), revision, &raw, None)
    }

    /// Returns the object in protobuf as it is stored, without the resourceVersion: a slice of `raw`. Not for a
    /// [`Self::computed`] one.
    pub fn stored(&self) -> Bytes {
        envelope::without_revision(&self.raw, &self.revision.to_string())
    }

    /// Returns the labels. They are decoded on first use.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        self.labels.get_or_init(|| {
            let read = WithLabels::decode(self.raw.as_ref()).unwrap_or_default();
            read.metadata.unwrap_or_default().labels
        })
    }

    /// Returns whether the object is being deleted.
    pub fn is_terminating(&self) -> bool {
        let read = WithDeletion::decode(self.raw.as_ref()).unwrap_or_default();
        let metadata = read.metadata.unwrap_or_default();
        metadata.deletion_timestamp.is_some()
    }

    /// Returns the cause of the last write, if it is known.
    pub fn cause(&self) -> Option<Cause> {
        WithCause::decode(self.object.as_ref()).ok()?.cause
    }

    /// Decodes the object.
    ///
    /// # Errors
    /// If the bytes are not a message of the kind.
    pub fn decode(&self) -> Result<Box<dyn Object>, Error> {
        self.kind.decode(&self.raw)
    }

    /// Returns the approximate memory that the object takes, in bytes.
    pub(super) fn size(&self) -> usize {
        size_of::<Self>() + self.object.len()
    }
}

#[cfg(test)]
mod tests {
    use setpoint_codec::kinds;
    use setpoint_proto::core::ConfigMap;

    use super::*;

    fn cached(cause: Option<Cause>) -> Cached {
        let mut object = ConfigMap::default();
        object.metadata.name = "web".into();
        object.metadata.labels = [("app".to_owned(), "web".to_owned())].into();
        let raw = object.encode_to_vec();
        let entry = Entry {
            key: String::new(),
            value: envelope::write("v1", "ConfigMap", &raw, cause.as_ref()),
            revision: Revision::from_raw(7),
            form: crate::Form::default(),
        };
        let kind = kinds().by_resource("configmaps").unwrap();
        Cached::read(kind, Key::new("production", "web"), &entry).unwrap()
    }

    #[test]
    fn an_object_and_its_encoded_response_share_one_buffer() {
        let cause = Cause {
            writer: "kubectl".into(),
            ..Default::default()
        };
        let cached = cached(Some(cause.clone()));
        let sent = setpoint::Object::decode(cached.object.clone()).unwrap();
        assert_eq!(sent.object.unwrap().value, cached.raw);
        let stored = ConfigMap::decode(cached.stored()).unwrap();
        assert_eq!(stored.metadata.resource_version, "");
        assert_eq!(stored.metadata.name, "web");
        assert_eq!(sent.revision, "7");
        assert_eq!(cached.cause(), Some(cause));
        let object = cached.decode().unwrap();
        assert_eq!(object.meta().resource_version, "7");
        assert_eq!(object.meta().name, "web");
        assert_eq!(cached.labels()["app"], "web");
    }

    #[test]
    fn a_deleted_object_carries_the_revision_of_its_deletion() {
        let gone = cached(None).at_deletion(Revision::from_raw(9), None);
        assert_eq!(gone.decode().unwrap().meta().resource_version, "9");
        assert_eq!(gone.labels()["app"], "web");
    }

    #[test]
    fn a_bookmark_carries_its_revision_and_marks_the_end_of_the_initial_state() {
        let kind = kinds().by_resource("configmaps").unwrap();
        let bookmark = |initial| {
            let bookmark = Cached::bookmark(kind, Revision::from_raw(9), initial);
            bookmark.decode().unwrap().meta().clone()
        };
        assert_eq!(bookmark(false).resource_version, "9");
        assert_eq!(bookmark(false).annotations.len(), 0);
        assert_eq!(bookmark(true).annotations[INITIAL_EVENTS_END], "true");
    }
}
