//! The metadata that controllers keep of objects.

use std::collections::BTreeMap;

use jiff::Timestamp;
use setpoint_proto::meta::ObjectMeta;

use crate::{Key, Owner, Revision, owner};

/// The parsed metadata of an object, without fields that no controller needs, such as managed fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Namespace and name.
    pub key: Key,
    /// The uid, which unlike the name is never reused.
    pub uid: String,
    /// The revision of the last write.
    pub revision: Revision,
    /// The generation, which each change of the spec increments.
    pub generation: i64,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
    /// The owner that is its controller.
    pub owner: Option<Owner>,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
    /// The creation time.
    pub created: Option<Timestamp>,
}

impl Meta {
    /// Parses the metadata of a stored object.
    pub fn of(meta: &ObjectMeta) -> Self {
        Self {
            key: Key::of(meta),
            uid: meta.uid.clone(),
            revision: Revision::of(meta),
            generation: meta.generation,
            labels: meta.labels.clone(),
            annotations: meta.annotations.clone(),
            owner: owner::controller_of(meta).map(Owner::of),
            deleting: meta.deletion_timestamp.is_some(),
            created: meta.creation_timestamp.timestamp(),
        }
    }

    /// Parses the identity of a stored object alone: key, uid and revision. For views that need nothing else.
    pub fn identity(meta: &ObjectMeta) -> Self {
        Self {
            key: Key::of(meta),
            uid: meta.uid.clone(),
            revision: Revision::of(meta),
            ..Self::default()
        }
    }

    /// Returns the metadata of a conditional write: namespace, name, uid and resourceVersion.
    pub fn precondition(&self) -> ObjectMeta {
        ObjectMeta {
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
            uid: self.uid.clone(),
            resource_version: self.revision.to_string(),
            ..ObjectMeta::default()
        }
    }

    /// Returns whether the object with this uid is its controller.
    pub fn is_owned_by(&self, uid: &str) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.uid == uid)
    }

    /// Returns an annotation, if it is set.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotation_returns_none_if_unset_and_empty_text_if_empty() {
        let mut meta = ObjectMeta::default();
        meta.annotations.insert("note".into(), "text".into());
        meta.annotations.insert("empty".into(), String::new());
        let meta = Meta::of(&meta);
        assert_eq!(meta.annotation("note"), Some("text"));
        assert_eq!(meta.annotation("empty"), Some(""));
        assert_eq!(meta.annotation("other"), None);
    }
}
