//! Volumes: a node reports the size of those that it has resized, and releases those whose directories it has removed.

use setpoint_proto::core::{PersistentVolume, PersistentVolumeClaim};

use super::{Outcome, Write, forbidden};
use crate::admission::Operation;

/// The annotation of a PersistentVolume with the name of the node that has its directory.
const NODE: &str = "setpoint.dev/node";
/// The finalizer that the node removes with the directory.
const FINALIZER: &str = "setpoint.dev/local-path";

impl Write<'_> {
    pub(super) fn check_claim_status(&self) -> Outcome {
        if self.request.operation != Operation::Update {
            return self.unexpected_operation();
        }
        let (old, new) = (
            self.old::<PersistentVolumeClaim>()?,
            self.object::<PersistentVolumeClaim>()?,
        );
        match without_what_nodes_report(old) == without_what_nodes_report(new) {
            true => Ok(()),
            false => forbidden(format!(
                "node {:?} is not allowed to update fields other than status.quantity and status.conditions",
                self.node
            )),
        }
    }

    /// Allows to remove the finalizer of a volume of the node.
    pub(super) fn check_volume(&self) -> Outcome {
        if self.request.operation != Operation::Update {
            return self.unexpected_operation();
        }
        let (node, old, new) = (
            self.node,
            self.old::<PersistentVolume>()?,
            self.object::<PersistentVolume>()?,
        );
        let owner = old.metadata.annotations.get(NODE);
        if owner.is_none_or(|owner| owner != node) {
            return forbidden(format!(
                "node {node:?} can only update persistentvolumes of its own directories"
            ));
        }
        let mut released = old.clone();
        released.metadata.finalizers.retain(|one| one != FINALIZER);
        match settled(released, new) == *new {
            true => Ok(()),
            false => forbidden(format!(
                "node {node:?} can only remove the finalizer {FINALIZER:?} of a persistentvolume"
            )),
        }
    }
}

/// Returns a claim without the fields that nodes write, and without those that each write changes.
fn without_what_nodes_report(claim: &PersistentVolumeClaim) -> PersistentVolumeClaim {
    let mut claim = claim.clone();
    claim.metadata.resource_version.clear();
    claim.metadata.managed_fields.clear();
    let status = &mut claim.status;
    status.capacity.clear();
    status.conditions.clear();
    status.allocated_resources.clear();
    status.allocated_resource_statuses.clear();
    claim
}

/// Returns a volume with the fields that each write changes as in another version of it.
fn settled(mut volume: PersistentVolume, as_in: &PersistentVolume) -> PersistentVolume {
    let (meta, other) = (&mut volume.metadata, &as_in.metadata);
    meta.resource_version.clone_from(&other.resource_version);
    meta.managed_fields.clone_from(&other.managed_fields);
    meta.generation = other.generation;
    volume
}
