//! Status: the phase of a claim, and the size, access modes and attributes class of its volume. Pure.

use setpoint_controller::Outcome;
use setpoint_proto::core::PersistentVolumeClaimStatus;

use super::{Action, Binding, World};
use crate::Notice;

/// Returns the status that the claim should have; `None` if it has it. After a write of the claim the next observation
/// decides.
pub fn status(world: &World, outcome: &Outcome<Action>) -> Option<PersistentVolumeClaimStatus> {
    let writes = |action: &Action| !matches!(action, Action::Report(_) | Action::Provision(_));
    if outcome.plan.steps.iter().any(|step| writes(&step.action)) {
        return None;
    }
    let now = &world.claim.status;
    let mut status = now.clone();
    match Binding::of(world) {
        Binding::Complete(volume) => {
            // A volume that grew is reported once the file system has grown, too.
            if now.phase != "Bound" || !now.capacity.contains_key("storage") {
                let capacity = volume.capacity.clone().unwrap_or_default();
                status.capacity = [("storage".to_owned(), capacity)].into();
            }
            // Later on, who changes the volume sets it.
            if now.phase == "Pending" {
                let class = Some(&volume.volume.attributes_class);
                status.current_volume_attributes_class_name =
                    class.filter(|class| !class.is_empty()).cloned();
            }
            status.phase = "Bound".to_owned();
            status.access_modes.clone_from(&volume.volume.access_modes);
        }
        Binding::Lost(_) => status.phase = "Lost".to_owned(),
        Binding::Open | Binding::Blocked(_) | Binding::Chosen(_) => {
            status.phase = "Pending".to_owned();
            status.access_modes.clear();
            status.capacity.clear();
            status.current_volume_attributes_class_name = None;
        }
    }
    (status != *now).then_some(status)
}

/// Returns the Event about a new status, if it is a loss.
pub fn notice(world: &World, status: &PersistentVolumeClaimStatus) -> Option<Notice> {
    match Binding::of(world) {
        Binding::Lost(notice) if status.phase == "Lost" => Some(notice),
        _ => None,
    }
}
