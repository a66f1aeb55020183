//! Storage: the claims of waiting Pods, and the volumes and classes that they may be bound to.

use std::collections::HashMap;
use std::sync::Arc;

use setpoint_controller::{Reader, View};
use setpoint_model::volume::{
    Claim, READ_WRITE_ONCE_POD, Volume, WAIT_FOR_FIRST_CONSUMER, reserved_for,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::{
    PersistentVolume, PersistentVolumeClaim, PodSpec, TopologySelectorTerm,
};
use setpoint_proto::storage::StorageClass;

use crate::pod::PodView;

/// The use of a claim by a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimUse {
    /// The name of the claim.
    pub name: Box<str>,
    /// Whether the claim belongs to the Pod: that of an ephemeral volume.
    pub is_ephemeral: bool,
}

impl ClaimUse {
    /// Returns the claims of a Pod's volumes.
    pub fn of_pod(spec: &PodSpec, pod: &str) -> Vec<Self> {
        let volumes = spec.volumes.iter().filter_map(|volume| {
            let source = &volume.volume_source;
            let claim = source.persistent_volume_claim.as_ref();
            let named = claim.map(|claim| claim.claim_name.as_str().into());
            let is_ephemeral = named.is_none() && source.ephemeral.is_some();
            let own = is_ephemeral.then(|| format!("{pod}-{}", volume.name).into());
            Some(Self {
                name: named.or(own)?,
                is_ephemeral,
            })
        });
        volumes.collect()
    }
}

/// A view of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimView {
    /// The fields that decide on its binding.
    pub claim: Claim,
}

impl View for ClaimView {
    type Object = PersistentVolumeClaim;

    fn of(object: PersistentVolumeClaim) -> Self {
        Self {
            claim: Claim::of(&object),
        }
    }

    fn meta(&self) -> &Meta {
        &self.claim.meta
    }
}

impl ClaimView {
    /// Returns whether only one Pod may use it at a time.
    pub fn is_exclusive(&self) -> bool {
        self.claim.has_access_mode(READ_WRITE_ONCE_POD)
    }
}

/// A view of a volume.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeView {
    /// The fields that decide on its binding.
    pub volume: Volume,
    tag: String,
}

impl View for VolumeView {
    type Object = PersistentVolume;

    fn of(object: PersistentVolume) -> Self {
        let volume = Volume::of(&object);
        Self {
            tag: volume.index_key(),
            volume,
        }
    }

    fn meta(&self) -> &Meta {
        &self.volume.meta
    }

    fn tag(&self) -> Option<&str> {
        Some(&self.tag)
    }
}

impl AsRef<Volume> for VolumeView {
    fn as_ref(&self) -> &Volume {
        &self.volume
    }
}

/// A view of a StorageClass.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// The name of the provisioner.
    pub provisioner: String,
    /// Whether claims wait for their first Pod.
    pub is_delayed: bool,
    /// The labels of the nodes for which it has volumes, in one of these terms; all nodes without any.
    pub topologies: Vec<TopologySelectorTerm>,
}

impl View for ClassView {
    type Object = StorageClass;

    fn of(class: StorageClass) -> Self {
        let mut meta = Meta::of(&class.metadata);
        meta.labels.clear();
        meta.annotations.clear();
        Self {
            meta,
            provisioner: class.provisioner,
            is_delayed: class.volume_binding_mode.as_deref() == Some(WAIT_FOR_FIRST_CONSUMER),
            topologies: class.allowed_topologies,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// The claims, volumes and classes that decide where Pods with claims fit.
#[derive(Clone, Debug, Default)]
pub struct Storage {
    /// The claims, with the volumes that they may be bound to.
    pub claims: HashMap<Key, (Arc<ClaimView>, Vec<Arc<VolumeView>>)>,
    /// The volumes that claims name, by name.
    pub volumes: HashMap<String, Arc<VolumeView>>,
    /// The classes of the claims, by name.
    pub classes: HashMap<String, Arc<ClassView>>,
}

/// The caches of storage.
pub struct StorageCaches {
    /// The claims.
    pub claims: Reader<ClaimView>,
    /// The volumes.
    pub volumes: Reader<VolumeView>,
    /// The StorageClasses.
    pub classes: Reader<ClassView>,
}

impl StorageCaches {
    /// Returns what the claims of these Pods depend on.
    pub fn take(&self, pods: &[Arc<PodView>]) -> Storage {
        let mut storage = Storage::default();
        let uses = pods.iter().flat_map(|pod| {
            let namespace = &pod.meta.key.namespace;
            let claims = pod.claims.iter();
            claims.map(move |used| Key::new(namespace, &*used.name))
        });
        for key in uses {
            if storage.claims.contains_key(&key) {
                continue;
            }
            let Some(view) = self.claims.get(&key) else {
                continue;
            };
            let claim = &view.claim;
            let named = self.volumes.get(&Key::new("", &claim.volume));
            storage
                .volumes
                .extend(named.map(|volume| (claim.volume.clone(), volume)));
            let class = self.classes.get(&Key::new("", claim.class()));
            storage
                .classes
                .extend(class.map(|class| (claim.class().to_owned(), class)));
            let mut candidates = Vec::new();
            if claim.volume.is_empty() {
                candidates = self.volumes.tagged(&reserved_for(&key));
                candidates.extend(self.volumes.tagged(claim.class()));
            }
            storage.claims.insert(key, (view, candidates));
        }
        storage
    }
}
