//! Status: the phase of a volume. Pure.

use setpoint_controller::Outcome;
use setpoint_proto::core::PersistentVolumeStatus;

use super::plan::Fate;
use super::{Action, ClaimState, World};
use crate::Notice;

/// Returns the status that the volume should have; `None` if it has it. After a write of the volume the next
/// observation decides.
pub fn status(world: &World, outcome: &Outcome<Action>) -> Option<PersistentVolumeStatus> {
    if !outcome.plan.is_empty() {
        return None;
    }
    let volume = &world.volume.volume;
    let failure = failure(world);
    let phase = match (&failure, world.fate(), &world.claim) {
        // The release is written before a failure to reclaim, so that no step of the history is left out.
        (Some(_), ..) if ["Released", "Failed"].contains(&&*volume.phase) => "Failed",
        (_, Fate::Reclaimed, _) if volume.phase == "Failed" => "Failed",
        (_, Fate::Reclaimed, _) => "Released",
        (_, _, ClaimState::None | ClaimState::Named) => "Available",
        _ => "Bound",
    };
    let failure = failure.filter(|_| phase == "Failed");
    let mut status = world.volume.status.clone();
    if status.phase == phase {
        return None;
    }
    phase.clone_into(&mut status.phase);
    let (reason, message) = failure
        .map(|notice| (notice.reason.to_owned(), notice.message))
        .unwrap_or_default();
    (status.reason, status.message) = (reason, message);
    status.last_phase_transition_time = None;
    Some(status)
}

/// Returns the Event about a new status, if it is a failure.
pub fn notice(world: &World, status: &PersistentVolumeStatus) -> Option<Notice> {
    failure(world).filter(|_| status.phase == "Failed")
}

/// Returns why a volume that is to be reclaimed cannot be. Volumes of CSI drivers, and of all provisioners but plugins,
/// are theirs to delete.
fn failure(world: &World) -> Option<Notice> {
    if world.fate() != Fate::Reclaimed {
        return None;
    }
    let view = &world.volume;
    let volume = &view.volume;
    match (&*volume.reclaim_policy, volume.provisioner()) {
        ("Recycle", _) => Some(Notice::warning(
            "VolumeFailedRecycle",
            "No recycler plugin found for the volume!",
        )),
        ("Delete", Some(provisioner)) if !provisioner.starts_with("kubernetes.io/") => None,
        ("Delete", _) if !view.is_csi => Some(Notice::warning(
            "VolumeFailedDelete",
            format!(
                "error getting deleter volume plugin for volume {:?}: no deletable volume plugin matched",
                volume.name()
            ),
        )),
        _ => None,
    }
}
