//! Owner references.

use std::fmt;

use setpoint_proto::Resource;
use setpoint_proto::meta::{ObjectMeta, OwnerReference};

use crate::Meta;

/// The controller of an object, from its owner reference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The kind, for example `ReplicaSet`.
    pub kind: String,
    /// The name, in the namespace of the owned object.
    pub name: String,
    /// The uid.
    pub uid: String,
}

impl Owner {
    /// Returns the owner in a reference.
    pub fn of(reference: &OwnerReference) -> Self {
        Self {
            kind: reference.kind.clone(),
            name: reference.name.clone(),
            uid: reference.uid.clone(),
        }
    }
}

/// A reference to an owner, as a part of an action.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Reference(pub OwnerReference);

/// Writes kind and name only, since plans are printed for users.
impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0.kind, self.0.name)
    }
}

/// Returns the reference to the controller of an object, which has at most one.
pub fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references
        .iter()
        .find(|reference| reference.controller == Some(true))
}

/// Returns the reference that makes `owner` the controller of an object.
pub fn reference_to<T: Resource>(owner: &T) -> OwnerReference {
    reference(T::API_VERSION, T::KIND, &Meta::of(owner.meta()))
}

/// As [`reference_to`], from the owner's metadata.
pub fn reference(api_version: &str, kind: &str, owner: &Meta) -> OwnerReference {
    OwnerReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: owner.key.name.clone(),
        uid: owner.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::apps::ReplicaSet;

    use super::*;

    fn set() -> ReplicaSet {
        let metadata = ObjectMeta {
            name: "web-5d9".into(),
            uid: "u1".into(),
            ..Default::default()
        };
        ReplicaSet {
            metadata,
            ..Default::default()
        }
    }

    #[test]
    fn reference_to_makes_the_object_the_controller() {
        let mut meta = ObjectMeta::default();
        meta.owner_references.push(reference_to(&set()));
        let owner = controller_of(&meta).unwrap();
        assert_eq!(
            (owner.kind.as_str(), owner.name.as_str()),
            ("ReplicaSet", "web-5d9")
        );
        assert_eq!(owner.api_version, "apps/v1");
        assert_eq!(
            format!("{:?}", Reference(owner.clone())),
            "ReplicaSet web-5d9"
        );
        assert!(Meta::of(&meta).is_owned_by("u1"));
        assert!(!Meta::of(&meta).is_owned_by("u2"));
    }

    #[test]
    fn controller_of_ignores_owners_that_are_not_the_controller() {
        let mut meta = ObjectMeta::default();
        meta.owner_references.push(OwnerReference {
            controller: None,
            ..reference_to(&set())
        });
        assert_eq!(controller_of(&meta), None);
    }
}
