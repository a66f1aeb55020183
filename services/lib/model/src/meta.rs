//! The part of an object's metadata that controllers keep.

use std::collections::BTreeMap;

use jiff::Timestamp;
use setpoint_proto::meta::ObjectMeta;

use crate::{Key, Owner, Revision, owner};

/// Metadata parsed once, at the edge; leaves behind what no controller asks for, such as managed fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Namespace and name.
    pub key: Key,
    /// Never reused, unlike the name.
    pub uid: String,
    /// The last write.
    pub revision: Revision,
    /// Grows with each change of the spec.
    pub generation: i64,
    /// For selectors.
    pub labels: BTreeMap<String, String>,
    /// For tools.
    pub annotations: BTreeMap<String, String>,
    /// The one owner that controls it.
    pub owner: Option<Owner>,
    /// Has its deletion begun?
    pub deleting: bool,
    /// When it was created.
    pub created: Option<Timestamp>,
}

impl Meta {
    /// The metadata of a stored object.
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

    /// Returns the metadata of a conditional write: the object's identity and the version that was seen.
    pub fn precondition(&self) -> ObjectMeta {
        ObjectMeta {
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
            uid: self.uid.clone(),
            resource_version: self.revision.to_string(),
            ..ObjectMeta::default()
        }
    }

    /// Is the object with this uid its controller?
    pub fn is_owned_by(&self, uid: &str) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.uid == uid)
    }

    /// The annotation, if it is set.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_that_is_not_set_differs_from_an_empty_one() {
        let mut meta = ObjectMeta::default();
        meta.annotations.insert("note".into(), "text".into());
        meta.annotations.insert("empty".into(), String::new());
        let meta = Meta::of(&meta);
        assert_eq!(meta.annotation("note"), Some("text"));
        assert_eq!(meta.annotation("empty"), Some(""));
        assert_eq!(meta.annotation("other"), None);
    }
}
