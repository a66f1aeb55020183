//! What the collector looks at in an object: who it is, whose it is, and whether it is ending.

use prost::Message;
use setpoint_codec::{Kind, kinds};
use setpoint_model::Key;
use setpoint_proto::meta::{ObjectMeta, OwnerReference};

use crate::registry::Cached;

/// An object in its family.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub kind: &'static Kind,
    pub key: Key,
    pub uid: String,
    pub owners: Vec<OwnerReference>,
    pub finalizers: Vec<String>,
    pub ending: bool,
}

/// The part of any object that is looked at.
#[derive(Message)]
struct Bare {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
}

impl Member {
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

    /// Is that one of its owners?
    pub fn belongs_to(&self, owner: &str) -> bool {
        self.owners.iter().any(|reference| reference.uid == owner)
    }

    /// Where the owner should be found: beside its dependant, or in no namespace. `None` for kinds not known here.
    pub fn place_of(&self, owner: &OwnerReference) -> Option<(&'static Kind, Key)> {
        let kind = kinds().by_kind(&owner.api_version, &owner.kind)?;
        let namespace = if kind.namespaced {
            self.key.namespace.as_str()
        } else {
            ""
        };
        Some((kind, Key::new(namespace, &owner.name)))
    }
}
