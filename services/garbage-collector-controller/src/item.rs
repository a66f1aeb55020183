//! Objects and their owners, as the gateway has them.

use std::fmt;

use setpoint_model::{Key, Revision};
use setpoint_proto::core::ObjectReference;
use setpoint_proto::meta::{ObjectMeta, OwnerReference};
use setpoint_proto::setpoint::{self, ObjectMetadata, ObjectRef, owner};

/// The finalizer of an object whose deletion waits for that of its dependants.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object whose deletion waits until its dependants are orphaned.
pub(crate) const ORPHAN: &str = "orphan";

/// An object of any kind.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Item {
    /// The plural of its kind with the group.
    pub resource: String,
    /// Its `apiVersion`.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Namespace and name.
    pub key: Key,
    /// The uid.
    pub uid: String,
    /// The revision of its last write.
    pub revision: Revision,
    /// The references to its owners.
    pub owners: Vec<OwnerReference>,
    /// The finalizers that hold it.
    pub finalizers: Vec<String>,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// Writes kind and key only, since plans are printed for users.
impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.resource, self.key)
    }
}

impl Item {
    /// Returns the item of an object.
    pub fn of(object: ObjectMetadata) -> Self {
        let ObjectMetadata {
            resource,
            metadata,
            api_version,
            kind,
        } = object;
        Self {
            resource,
            api_version,
            kind,
            key: Key::of(&metadata),
            revision: Revision::of(&metadata),
            uid: metadata.uid,
            owners: metadata.owner_references,
            finalizers: metadata.finalizers,
            deleting: metadata.deletion_timestamp.is_some(),
        }
    }

    /// Returns a reference to it.
    pub fn reference(&self) -> ObjectRef {
        self.key.clone().in_resource(&self.resource)
    }

    /// Returns a reference to it for Events.
    pub(crate) fn object_reference(&self) -> ObjectReference {
        ObjectReference {
            kind: self.kind.clone(),
            api_version: self.api_version.clone(),
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
            uid: self.uid.clone(),
            ..ObjectReference::default()
        }
    }

    /// Returns its metadata, as far as it is known.
    pub(crate) fn metadata(&self) -> ObjectMeta {
        ObjectMeta {
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
            uid: self.uid.clone(),
            resource_version: self.revision.to_string(),
            ..ObjectMeta::default()
        }
    }

    /// Returns whether a finalizer holds it.
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|held| held == name)
    }

    /// Returns whether it is being deleted in the foreground, so that it waits for its dependants.
    pub fn waits_for_dependants(&self) -> bool {
        self.deleting && self.has_finalizer(FOREGROUND)
    }

    /// Returns whether a reference of it blocks the deletion of the owner with this uid.
    pub fn blocks(&self, owner: &str) -> bool {
        let mut owners = self.owners.iter();
        owners.any(|reference| reference.uid == owner && is_blocking(reference))
    }
}

pub(crate) fn is_blocking(reference: &OwnerReference) -> bool {
    reference.block_owner_deletion == Some(true)
}

/// The owner that a reference names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The uid in the reference.
    pub uid: String,
    /// Its state.
    pub state: OwnerState,
}

/// The state of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerState {
    /// It exists, and does not wait for its dependants.
    Solid,
    /// It does not exist.
    Dangling,
    /// It is being deleted in the foreground.
    Waiting,
    /// Its kind is not served.
    UnknownKind,
    /// The reference names no object: it is from a cluster-scoped object to a namespaced one.
    OutOfScope,
}

impl Owner {
    /// Returns the owner that a reference names.
    pub fn of(reference: &OwnerReference, read: setpoint::Owner) -> Self {
        let state = match read.state() {
            owner::State::Absent => OwnerState::Dangling,
            owner::State::OutOfScope => OwnerState::OutOfScope,
            owner::State::UnknownKind | owner::State::Unspecified => OwnerState::UnknownKind,
            owner::State::Present => {
                let owner = Item::of(read.object.unwrap_or_default());
                match owner.waits_for_dependants() {
                    true => OwnerState::Waiting,
                    false => OwnerState::Solid,
                }
            }
        };
        Self {
            uid: reference.uid.clone(),
            state,
        }
    }
}

#[cfg(test)]
mod tests {
    use setpoint_model::Meta;

    use super::*;
    use crate::Graph;

    #[test]
    fn an_object_is_named_alike_by_the_graph_in_events_and_after_a_read() {
        let item = Item {
            resource: "deployments.apps".into(),
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            key: Key::new("shop", "web"),
            uid: "uid-web".into(),
            revision: Revision::from_raw(7),
            ..Item::default()
        };
        let metadata = item.metadata();
        assert_eq!(Revision::of(&metadata), item.revision);
        let read = Meta::of(&metadata);
        assert_eq!((&read.key, &read.uid), (&item.key, &item.uid));
        let mut graph = Graph::default();
        graph.put(&item);
        assert!(graph.identity("uid-other").is_none());
        let (known, kind) = graph.identity("uid-web").unwrap();
        assert_eq!((known.key, known.uid), (read.key, read.uid));
        assert_eq!(kind, (item.resource.clone(), item.kind.clone()));
        let reference = ObjectReference {
            kind: "Deployment".into(),
            api_version: "apps/v1".into(),
            namespace: "shop".into(),
            name: "web".into(),
            uid: "uid-web".into(),
            ..ObjectReference::default()
        };
        assert_eq!(item.object_reference(), reference);
    }
}
