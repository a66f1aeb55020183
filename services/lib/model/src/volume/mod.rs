//! PersistentVolumes and claims: what binds one to the other, and which volume fits a claim.
//!
//! A volume is reserved for a claim by `spec.claimRef`, and a claim names its volume in `spec.volumeName`. The two are
//! bound if each names the other, the volume by the uid of the claim.
#![warn(clippy::arithmetic_side_effects)]

mod claim;
mod local;
mod matching;
mod persistent;

pub use claim::Claim;
pub use local::{LOCAL_PATH, NODE, RUNTIME, SIMULATED, local_folder};
pub use matching::{Site, best, satisfies};
pub use persistent::{ClaimRef, Volume, reserved_for};

use setpoint_proto::meta::{ObjectMeta, Quantity};

use crate::quantity::Amount;

/// On claims: the binding is complete.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// On volumes and claims: the controller, not the user, has set the name of the other.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// On volumes: the provisioner that has created it.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// On claims: the node on which the scheduler will place the first Pod.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The annotation with the class in old versions of Kubernetes.
pub const CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// The finalizer of claims: Pods may use them.
pub const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// The finalizer of volumes: claims may be bound to them.
pub const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";
/// The binding mode of a class whose claims are bound when their first Pod is scheduled.
pub const WAIT_FOR_FIRST_CONSUMER: &str = "WaitForFirstConsumer";
/// The access mode of a volume that one Pod may use at a time.
pub const READ_WRITE_ONCE_POD: &str = "ReadWriteOncePod";

/// Returns the class of a volume or claim: that of the old annotation, if it is set.
fn class_of(meta: &ObjectMeta, class: Option<&str>) -> Option<String> {
    let annotation = meta.annotations.get(CLASS).map(String::as_str);
    annotation.or(class).map(str::to_owned)
}

/// Returns an amount of storage, zero for none: the gateway accepts only valid ones.
fn storage(amounts: &std::collections::BTreeMap<String, Quantity>) -> Amount {
    let amount = amounts
        .get("storage")
        .map(|amount| Amount::parse(&amount.string));
    amount.and_then(Result::ok).unwrap_or(Amount::ZERO)
}

/// Returns the volume mode, of which the default is a file system.
fn mode(mode: Option<&str>) -> String {
    mode.filter(|mode| !mode.is_empty())
        .unwrap_or("Filesystem")
        .to_owned()
}
