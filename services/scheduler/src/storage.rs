//! Storage: the claims of waiting Pods, and the volumes and classes that they may be bound to.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use setpoint_controller::{Reader, View};
use setpoint_model::volume::{
    Claim, READ_WRITE_ONCE_POD, Volume, WAIT_FOR_FIRST_CONSUMER, reserved_for,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::{PersistentVolume, PersistentVolumeClaim, TopologySelectorTerm};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::storage::{CsiNode, CsiNodeDriver, StorageClass};

use crate::pod::PodView;

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

/// The volume of a claim that waits for its first Pod.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The claim.
    pub claim: Arc<ClaimView>,
    /// The volume; `None` to have one provisioned.
    pub volume: Option<Arc<VolumeView>>,
}

/// A volume of a CSI driver.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CsiVolume {
    /// The name of the driver.
    pub driver: String,
    /// The identity of the volume.
    pub handle: String,
}

/// A view of a CSINode.
#[derive(Clone, Debug, PartialEq)]
pub struct CsiNodeView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// The maximum number of attached volumes, by driver.
    pub limits: BTreeMap<String, i64>,
}

impl View for CsiNodeView {
    type Object = CsiNode;

    fn of(node: CsiNode) -> Self {
        let limit = |driver: CsiNodeDriver| Some((driver.name, driver.allocatable?.count?.into()));
        Self {
            meta: bare(&node.metadata),
            limits: node.spec.drivers.into_iter().filter_map(limit).collect(),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

fn bare(metadata: &ObjectMeta) -> Meta {
    let mut meta = Meta::of(metadata);
    meta.labels.clear();
    meta.annotations.clear();
    meta
}

/// A view of a volume.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeView {
    /// The fields that decide on its binding.
    pub volume: Volume,
    /// The volume of a CSI driver, if it is one.
    pub csi: Option<CsiVolume>,
    tag: String,
}

impl View for VolumeView {
    type Object = PersistentVolume;

    fn of(object: PersistentVolume) -> Self {
        let volume = Volume::of(&object);
        let source = object.spec.persistent_volume_source.csi;
        let csi = source.map(|source| CsiVolume {
            driver: source.driver,
            handle: source.volume_handle,
        });
        Self {
            tag: volume.index_key(),
            volume,
            csi,
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
        Self {
            meta: bare(&class.metadata),
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
    /// The maximum number of attached volumes of each driver, by node; only of nodes with a limit.
    pub limits: HashMap<String, BTreeMap<String, i64>>,
    /// The CSI volumes of claims, also of those of Pods on nodes; none without limits.
    pub csi_volumes: HashMap<Key, CsiVolume>,
}

/// The caches of storage.
pub struct StorageCaches {
    /// The claims.
    pub claims: Reader<ClaimView>,
    /// The volumes.
    pub volumes: Reader<VolumeView>,
    /// The StorageClasses.
    pub classes: Reader<ClassView>,
    /// The CSINodes.
    pub csi_nodes: Reader<CsiNodeView>,
}

impl StorageCaches {
    /// Returns what the claims of pending Pods depend on, with the volumes of the Pods on nodes.
    pub fn take(&self, pending: &[Arc<PodView>], placed: &[Arc<PodView>]) -> Storage {
        let mut storage = Storage::default();
        for key in claims_of(pending) {
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
        if !storage.claims.is_empty() {
            storage.limits = self.limits();
        }
        if !storage.limits.is_empty() {
            let claims = claims_of(pending).chain(claims_of(placed));
            let volumes = claims.filter_map(|key| Some((key.clone(), self.csi_volume(&key)?)));
            storage.csi_volumes = volumes.collect();
        }
        storage
    }

    fn limits(&self) -> HashMap<String, BTreeMap<String, i64>> {
        let mut limits = HashMap::new();
        self.csi_nodes.for_each(|node, _| {
            if !node.limits.is_empty() {
                limits.insert(node.meta.key.name.clone(), node.limits.clone());
            }
        });
        limits
    }

    /// Returns the CSI volume of a claim. One that is not bound yet will get a volume of the driver that its class
    /// names.
    fn csi_volume(&self, key: &Key) -> Option<CsiVolume> {
        let claim = &self.claims.get(key)?.claim;
        if let Some(view) = self.volumes.get(&Key::new("", &claim.volume)) {
            return view.csi.clone();
        }
        let class = self.classes.get(&Key::new("", claim.class()))?;
        Some(CsiVolume {
            driver: class.provisioner.clone(),
            handle: format!("of-claim/{key}"),
        })
    }
}

fn claims_of(pods: &[Arc<PodView>]) -> impl Iterator<Item = Key> {
    pods.iter().flat_map(|pod| {
        let namespace = &pod.meta.key.namespace;
        let claims = pod.claims.iter();
        claims.map(move |used| Key::new(namespace, &*used.name))
    })
}
