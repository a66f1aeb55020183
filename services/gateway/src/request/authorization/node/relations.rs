//! The relations of a node to other objects: it runs Pods, and these name others.
//!
//! ```text
//! Secret, ConfigMap, ServiceAccount, ResourceClaim ─▶ Pod ─▶ Node
//! Secret ─▶ PersistentVolume ─▶ PersistentVolumeClaim ─▶ Pod ─▶ Node
//! PersistentVolumeClaim ─▶ PersistentVolume ─▶ Node, if the volume is a directory of the node
//! VolumeAttachment, ResourceSlice ─▶ Node
//! ```
//! A mirror Pod, which a node creates itself, gives it nothing.

use std::sync::Arc;

use memchr::memmem;
use prost::Message;
use setpoint_codec::kind_of;
use setpoint_kinds::persistentvolume::secrets;
use setpoint_kinds::pod::references;
use setpoint_kinds::validation::podspec::MIRROR;
use setpoint_model::Key;
use setpoint_model::selector::{Comparison, FieldRequirement, Fields, Selector};
use setpoint_model::volume::NODE;
use setpoint_proto::Resource;
use setpoint_proto::core::{ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod};
use setpoint_proto::resource::ResourceSlice;
use setpoint_proto::storage::VolumeAttachment;
use setpoint_store::cache::{Cache, Cached, Filter};

/// The kinds of objects that a node can have to do with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Related {
    Pod,
    Secret,
    ConfigMap,
    /// A PersistentVolumeClaim.
    Claim,
    /// A PersistentVolume.
    Volume,
    /// A PersistentVolume that is a directory of the node, which removes that.
    Directory,
    ServiceAccount,
    ResourceClaim,
    /// A VolumeAttachment.
    Attachment,
    ResourceSlice,
}

/// The relations of a node, as far as the cache knows.
pub(super) struct Relations<'a> {
    cache: &'a Cache,
    node: &'a str,
}

impl<'a> Relations<'a> {
    pub(super) fn new(cache: &'a Cache, node: &'a str) -> Self {
        Self { cache, node }
    }

    /// Returns whether the node has to do with an object.
    pub(super) fn has(&self, kind: Related, namespace: &str, name: &str) -> bool {
        let key = Key::new(namespace, name);
        match kind {
            Related::Pod => self
                .get::<Pod>(&key)
                .is_some_and(|pod| pod.spec.node_name == self.node),
            Related::Attachment => self
                .get::<VolumeAttachment>(&key)
                .is_some_and(|attachment| attachment.spec.node_name == self.node),
            Related::ResourceSlice => self
                .get::<ResourceSlice>(&key)
                .is_some_and(|slice| slice.spec.node_name.as_deref() == Some(self.node)),
            Related::ConfigMap => self.is_named(&key, |pod| {
                references::config_maps(pod).any(|one| one == name)
            }),
            Related::ServiceAccount => {
                self.is_named(&key, |pod| pod.spec.service_account_name == name)
            }
            Related::ResourceClaim => self.is_named(&key, |pod| {
                references::resource_claims(pod).any(|one| one == name)
            }),
            Related::Secret => {
                self.is_named(&key, |pod| references::secrets(pod).any(|one| one == name))
                    || self.is_of_volume(&key)
            }
            Related::Claim => self.uses_claim(&key) || self.has_directory_for(&key),
            Related::Volume => self.get::<PersistentVolume>(&key).is_some_and(|volume| {
                let claim = volume.spec.claim_ref.as_ref().map(key_of);
                self.is_directory(&volume) || claim.is_some_and(|claim| self.uses_claim(&claim))
            }),
            Related::Directory => self
                .get::<PersistentVolume>(&key)
                .is_some_and(|volume| self.is_directory(&volume)),
        }
    }

    /// Returns whether a Pod of the node in the namespace of an object names it.
    fn is_named(&self, key: &Key, names: impl Fn(&Pod) -> bool) -> bool {
        let finder = memmem::Finder::new(&key.name);
        // Decoding takes longer than the search for a name, which few Pods have.
        let candidates = self.pods(&key.namespace).into_iter();
        let candidates = candidates.filter(|pod| finder.find(&pod.raw).is_some());
        decoded(candidates).any(|pod| names(&pod))
    }

    fn uses_claim(&self, key: &Key) -> bool {
        let pods = self.pods(&key.namespace).into_iter();
        decoded(pods).any(|pod| references::claims(&pod).any(|claim| claim == key.name))
    }

    /// Returns whether a volume is a directory of the node, as its annotation says, which no node writes.
    fn is_directory(&self, volume: &PersistentVolume) -> bool {
        let node = volume.metadata.annotations.get(NODE);
        node.is_some_and(|node| node == self.node)
    }

    /// Returns whether a directory of the node is a volume for a claim, which may be gone: the node reads that before
    /// it removes the directory.
    fn has_directory_for(&self, claim: &Key) -> bool {
        let all = Filter::all(kind_of::<PersistentVolume>(), "");
        let finder = memmem::Finder::new(&claim.name);
        let volumes = self.cache.peek_all(&all).into_iter();
        let candidates = volumes.filter(|volume| finder.find(&volume.raw).is_some());
        let mut volumes =
            candidates.filter_map(|one| PersistentVolume::decode(one.raw.as_ref()).ok());
        volumes.any(|volume| {
            let reserved = volume.spec.claim_ref.as_ref().map(key_of);
            reserved.as_ref() == Some(claim) && self.is_directory(&volume)
        })
    }

    /// Returns whether the node mounts a volume by a Secret.
    fn is_of_volume(&self, secret: &Key) -> bool {
        decoded(self.pods("").into_iter()).any(|pod| {
            let namespace = &pod.metadata.namespace;
            let mut claims = references::claims(&pod).map(|claim| Key::new(namespace, &claim));
            claims.any(|claim| {
                let volume = self.volume_of(&claim);
                let names = |volume: PersistentVolume| {
                    let wanted = (secret.namespace.as_str(), secret.name.as_str());
                    secrets::of_nodes(&volume).any(|one| one == wanted)
                };
                volume.is_some_and(names)
            })
        })
    }

    /// Returns the volume that a claim is bound to.
    fn volume_of(&self, claim: &Key) -> Option<PersistentVolume> {
        let name = self.get::<PersistentVolumeClaim>(claim)?.spec.volume_name;
        let volume = self.get::<PersistentVolume>(&Key::new("", &name))?;
        let bound = volume.spec.claim_ref.as_ref().map(key_of);
        (bound.as_ref() == Some(claim)).then_some(volume)
    }

    /// Returns the Pods of the node in a namespace, or in all if that is empty.
    fn pods(&self, namespace: &str) -> Vec<Arc<Cached>> {
        let of_node = FieldRequirement {
            path: "spec.nodeName".into(),
            comparison: Comparison::Equal,
            value: self.node.into(),
        };
        let fields = Fields::parse(&of_node.to_string()).unwrap_or_default();
        let kind = kind_of::<Pod>();
        match Filter::new(kind, namespace, Selector::everything(), &fields) {
            Ok(filter) if !fields.is_empty() => self.cache.peek_all(&filter),
            _ => Vec::new(),
        }
    }

    fn get<T: Resource + Message + Default>(&self, key: &Key) -> Option<T> {
        let cached = self.cache.peek(kind_of::<T>(), key)?;
        T::decode(cached.raw.as_ref()).ok()
    }
}

/// Returns the Pods that give rights to their node. One that cannot be decoded gives none.
fn decoded(pods: impl Iterator<Item = Arc<Cached>>) -> impl Iterator<Item = Pod> {
    let pods = pods.filter_map(|pod| Pod::decode(pod.raw.as_ref()).ok());
    pods.filter(|pod| !pod.metadata.annotations.contains_key(MIRROR))
}

fn key_of(reference: &ObjectReference) -> Key {
    Key::new(&reference.namespace, &reference.name)
}
