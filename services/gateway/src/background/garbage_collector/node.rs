//! The part of an object that the garbage collector needs: its identity, owners and finalizers.

use prost::Message;
use setpoint_codec::{Kind, KindTable};
use setpoint_model::Key;
use setpoint_proto::meta::{ObjectMeta, OwnerReference};

use crate::registry::Cached;
use crate::registry::validation::metadata::{FOREGROUND, ORPHAN};

/// A node of the graph of owners and dependants.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub kind: &'static Kind,
    pub key: Key,
    pub uid: String,
    pub owners: Vec<OwnerReference>,
    pub finalizers: Vec<String>,
    /// Whether it is being deleted.
    pub ending: bool,
}

/// The metadata of an object of any kind: only this field is decoded.
#[derive(Message)]
struct MetadataOnly {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
}

/// The location of the owner that a reference names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    At(&'static Kind, Key),
    /// A cluster-scoped object cannot have a namespaced owner: the reference does not name a namespace.
    Invalid,
    /// The kind of the owner is not served, so the reference cannot be resolved.
    Unknown,
}

impl Node {
    /// Returns the node of an object; `None` if it has no uid, such as a bookmark.
    pub fn of(cached: &Cached) -> Option<Self> {
        let meta = MetadataOnly::decode(cached.raw.as_ref()).ok()?.metadata?;
        Some(Self {
            kind: cached.kind,
            key: cached.key.clone(),
            uid: Some(meta.uid).filter(|uid| !uid.is_empty())?,
            owners: meta.owner_references,
            finalizers: meta.finalizers,
            ending: meta.deletion_timestamp.is_some(),
        })
    }

    /// Returns whether a reference names the owner with this uid.
    pub fn is_owned_by(&self, owner: &str) -> bool {
        self.owners.iter().any(|reference| reference.uid == owner)
    }

    /// Returns whether a reference blocks the deletion of the owner with this uid.
    pub fn blocks(&self, owner: &str) -> bool {
        let mut owners = self.owners.iter();
        owners.any(|reference| reference.uid == owner && is_blocking(reference))
    }

    /// Returns whether it is being deleted in the foreground, so that it waits for its dependants.
    pub fn waits_for_dependants(&self) -> bool {
        self.ending && self.has_finalizer(FOREGROUND)
    }

    /// Returns whether its deletion waits until its dependants are deleted or orphaned.
    pub fn is_held_for_dependants(&self) -> bool {
        self.ending && (self.has_finalizer(FOREGROUND) || self.has_finalizer(ORPHAN))
    }

    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }

    /// Returns the location of an owner: in the namespace of the dependant, or cluster-scoped.
    pub fn location_of(&self, kinds: &KindTable, owner: &OwnerReference) -> Location {
        let Some(kind) = kinds.by_kind(&owner.api_version, &owner.kind) else {
            return Location::Unknown;
        };
        match (kind.namespaced, self.kind.namespaced) {
            (true, false) => Location::Invalid,
            (true, true) => Location::At(kind, Key::new(&self.key.namespace, &owner.name)),
            (false, _) => Location::At(kind, Key::new("", &owner.name)),
        }
    }
}

pub(super) fn is_blocking(reference: &OwnerReference) -> bool {
    reference.block_owner_deletion == Some(true)
}
