//! The part of an object that the collector looks at: its identity, its owners, and whether it is ending.

use prost::Message;
use setpoint_codec::Kind;
use setpoint_model::Key;
use setpoint_proto::meta::{ObjectMeta, OwnerReference};

use crate::kinds::{self, Role};
use crate::registry::Cached;
use crate::registry::validation::metadata::{FOREGROUND, ORPHAN};
use crate::registry::write::namespace_lifecycle;

/// A node of the graph of owners and dependants.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub kind: &'static Kind,
    pub key: Key,
    pub uid: String,
    pub owners: Vec<OwnerReference>,
    pub finalizers: Vec<String>,
    pub ending: bool,
}

/// The part of any object that is decoded.
#[derive(Message)]
struct Bare {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
}

/// The place that an owner reference names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    At(&'static Kind, Key),
    /// A cluster-scoped object cannot belong to a namespaced one: the reference does not say of which namespace.
    Invalid,
    /// The kind is not served here, so nobody can tell whether the owner is there.
    Unknown,
}

impl Node {
    /// `None` for what has no identity, such as a bookmark.
    pub fn of(cached: &Cached) -> Option<Self> {
        let meta = Bare::decode(cached.raw.as_ref()).ok()?.metadata?;
        Some(Self {
            kind: cached.kind,
            key: cached.key.clone(),
            uid: Some(meta.uid).filter(|uid| !uid.is_empty())?,
            owners: meta.owner_references,
            finalizers: meta.finalizers,
            ending: meta.deletion_timestamp.is_some(),
        })
    }

    /// Does a reference of it name that owner?
    pub fn is_owned_by(&self, owner: &str) -> bool {
        self.owners.iter().any(|reference| reference.uid == owner)
    }

    /// Does a reference of it hold up the deletion of that owner?
    pub fn blocks(&self, owner: &str) -> bool {
        let mut owners = self.owners.iter();
        owners.any(|reference| reference.uid == owner && is_blocking(reference))
    }

    /// Is it being deleted in the foreground, so that it waits for its dependants?
    pub fn waits_for_dependants(&self) -> bool {
        self.ending && self.has_finalizer(FOREGROUND)
    }

    /// Does its deletion ask for something to be done to its dependants first?
    pub fn is_held_for_dependants(&self) -> bool {
        self.ending && (self.has_finalizer(FOREGROUND) || self.has_finalizer(ORPHAN))
    }

    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }

    pub fn is_pod(&self) -> bool {
        kinds::find(self.kind).is_some_and(|rules| rules.role() == Role::Pod)
    }

    pub fn is_namespace(&self) -> bool {
        self.kind == namespace_lifecycle::kind()
    }

    /// Returns where the owner should be: beside its dependant, or in no namespace.
    pub fn place_of(&self, owner: &OwnerReference) -> Place {
        let Some(kind) = setpoint_codec::kinds().by_kind(&owner.api_version, &owner.kind) else {
            return Place::Unknown;
        };
        match (kind.namespaced, self.kind.namespaced) {
            (true, false) => Place::Invalid,
            (true, true) => Place::At(kind, Key::new(&self.key.namespace, &owner.name)),
            (false, _) => Place::At(kind, Key::new("", &owner.name)),
        }
    }
}

pub(super) fn is_blocking(reference: &OwnerReference) -> bool {
    reference.block_owner_deletion == Some(true)
}
