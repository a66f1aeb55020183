//! One object as the cache holds it: encoded once, for every reader and watcher there will be.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;
use prost::Message;
use setpoint_codec::{Error, Kind, Object, envelope};
use setpoint_model::{Key, Revision};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{Any, Cause, setpoint};

use crate::store::Entry;

/// An object at a revision. It costs one buffer; what else is asked of it is read from there.
#[derive(Debug)]
pub struct Cached {
    /// Its kind.
    pub kind: &'static Kind,
    /// Its namespace and name.
    pub key: Key,
    /// Its last write.
    pub revision: Revision,
    /// Its protobuf, resourceVersion included. A part of `object`.
    pub raw: Bytes,
    /// It as an encoded `setpoint.v1.Object`.
    pub object: Bytes,
    labels: OnceLock<BTreeMap<String, String>>,
}

/// The parts of any object that selectors look at.
#[derive(Message)]
struct Labelled {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Labels>,
}

#[derive(Message)]
struct Labels {
    #[prost(btree_map = "string, string", tag = "11")]
    labels: BTreeMap<String, String>,
}

/// Of an encoded `setpoint.v1.Object`: why it is as it is.
#[derive(Message)]
struct Caused {
    #[prost(message, optional, tag = "3")]
    cause: Option<Cause>,
}

/// The part of any object that a bookmark has.
#[derive(Message)]
struct Bare {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
}

/// On the bookmark that ends the initial state, for clients that read JSON.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

impl Cached {
    /// The object in an entry of the store.
    ///
    /// # Errors
    /// When the value is no envelope.
    pub fn read(kind: &'static Kind, key: Key, entry: &Entry) -> Result<Self, envelope::Error> {
        let envelope = envelope::read(&entry.value)?;
        Ok(Self::new(
            kind,
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
        let text = revision.to_string();
        let any = Any {
            type_url: kind.type_url.clone(),
            value: envelope::with_revision(raw, &text),
        };
        let (any_len, raw_len) = (any.encoded_len(), any.value.len());
        let object = setpoint::Object {
            object: Some(any),
            revision: text,
            cause,
        };
        let object = Bytes::from(object.encode_to_vec());
        // The Any comes first, and the value last within it.
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

    /// The object as it last stood, at the revision of what took it away.
    pub(super) fn last_seen_at(&self, revision: Revision, cause: Option<Cause>) -> Self {
        Self::new(self.kind, self.key.clone(), revision, &self.raw, cause)
    }

    /// Nothing but a kind and a revision.
    pub(super) fn bookmark(kind: &'static Kind, revision: Revision, initial: bool) -> Self {
        let end = || (INITIAL_EVENTS_END.to_owned(), "true".to_owned());
        let metadata = initial.then(|| ObjectMeta {
            annotations: [end()].into(),
            ..Default::default()
        });
        let raw = Bytes::from(Bare { metadata }.encode_to_vec());
        Self::new(kind, Key::default(), revision, &raw, None)
    }

    /// Its labels; read when first asked for.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        self.labels.get_or_init(|| {
            let read = Labelled::decode(self.raw.as_ref()).unwrap_or_default();
            read.metadata.unwrap_or_default().labels
        })
    }

    /// Why it was last written, where its writer said so.
    pub fn cause(&self) -> Option<Cause> {
        Caused::decode(self.object.as_ref()).ok()?.cause
    }

    /// The object itself.
    ///
    /// # Errors
    /// When what is stored is no such message.
    pub fn decode(&self) -> Result<Box<dyn Object>, Error> {
        self.kind.decode(&self.raw)
    }

    /// What it costs to keep, about.
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
        };
        let kind = kinds().by_resource("configmaps").unwrap();
        Cached::read(kind, Key::new("production", "web"), &entry).unwrap()
    }

    #[test]
    fn one_buffer_holds_the_object_in_both_of_its_forms() {
        let cause = Cause {
            writer: "kubectl".into(),
            ..Default::default()
        };
        let cached = cached(Some(cause.clone()));
        let sent = setpoint::Object::decode(cached.object.clone()).unwrap();
        assert_eq!(sent.object.unwrap().value, cached.raw);
        assert_eq!(sent.revision, "7");
        assert_eq!(cached.cause(), Some(cause));
        let object = cached.decode().unwrap();
        assert_eq!(object.meta().resource_version, "7");
        assert_eq!(object.meta().name, "web");
        assert_eq!(cached.labels()["app"], "web");
    }

    #[test]
    fn an_object_that_went_away_has_the_revision_of_its_going() {
        let gone = cached(None).last_seen_at(Revision::from_raw(9), None);
        assert_eq!(gone.decode().unwrap().meta().resource_version, "9");
        assert_eq!(gone.labels()["app"], "web");
    }

    #[test]
    fn a_bookmark_has_a_revision_and_says_when_the_state_is_complete() {
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
