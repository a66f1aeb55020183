//! Builders of claims, classes, nodes and volumes.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_controller::{Plan, View as _};
use setpoint_persistentvolume_controller::claim::{self, ClaimView};
use setpoint_persistentvolume_controller::{ClassView, NodeView};
use setpoint_proto::core::{Node, ObjectReference, PersistentVolume, PersistentVolumeClaim};
use setpoint_proto::meta::Quantity;
use setpoint_proto::storage::StorageClass;

pub const LOCAL_PATH: &str = "setpoint.dev/local-path";
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
pub const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

pub fn storage(size: &str) -> BTreeMap<String, Quantity> {
    [("storage".to_owned(), Quantity::new(size))].into()
}

/// Returns a claim of 1 GiB of the class `standard`, which is protected and for which the node `one` was selected.
pub fn claim() -> PersistentVolumeClaim {
    let mut claim = PersistentVolumeClaim::default();
    let meta = &mut claim.metadata;
    (meta.namespace, meta.name, meta.uid) = ("shop".into(), "data".into(), "uid-data".into());
    meta.finalizers = vec!["kubernetes.io/pvc-protection".into()];
    meta.annotations.insert(SELECTED_NODE.into(), "one".into());
    meta.annotations
        .insert(PROVISIONER.into(), LOCAL_PATH.into());
    claim.spec.storage_class_name = Some("standard".into());
    claim.spec.access_modes = vec!["ReadWriteOnce".into()];
    claim.spec.resources.requests = storage("1Gi");
    claim
}

pub fn class() -> StorageClass {
    let mut class = StorageClass::default();
    class.metadata.name = "standard".into();
    class.provisioner = LOCAL_PATH.into();
    class.reclaim_policy = Some("Retain".into());
    class.volume_binding_mode = Some("WaitForFirstConsumer".into());
    class
}

pub fn node() -> NodeView {
    NodeView {
        hostname: Some("host-one".into()),
        folder: Some(("/volumes".into(), true)),
        ..NodeView::of(Node::default())
    }
}

pub fn claim_world(claim: PersistentVolumeClaim, class: StorageClass) -> claim::World {
    claim::World {
        claim: Arc::new(ClaimView::of(claim)),
        named: None,
        volumes: Vec::new(),
        class: Some(Arc::new(ClassView::of(class))),
        default_class: None,
        node: Some(Arc::new(node())),
        pods: Vec::new(),
    }
}

/// The claim that a volume is reserved for.
#[derive(Clone, Copy, Debug)]
pub enum Reserved {
    Nobody,
    Own,
    ByName,
    Other,
}

pub fn disk(reserved: Reserved, size: &str) -> PersistentVolume {
    let mut volume = PersistentVolume::default();
    volume.metadata.name = "disk".into();
    volume.metadata.finalizers = vec!["kubernetes.io/pv-protection".into()];
    volume.spec.capacity = storage(size);
    volume.spec.access_modes = vec!["ReadWriteOnce".into()];
    volume.spec.storage_class_name = "standard".into();
    volume.status.phase = "Available".into();
    let claim = |name: &str, uid: &str| {
        Some(ObjectReference {
            namespace: "shop".into(),
            name: name.into(),
            uid: uid.into(),
            ..ObjectReference::default()
        })
    };
    volume.spec.claim_ref = match reserved {
        Reserved::Nobody => None,
        Reserved::Own => claim("data", "uid-data"),
        Reserved::ByName => claim("data", ""),
        Reserved::Other => claim("other", "uid-other"),
    };
    volume
}

pub fn actions<A>(plan: Plan<A>) -> Vec<A> {
    plan.steps.into_iter().map(|step| step.action).collect()
}
