//! Status: the limits of the spec, and what is used of them.

use setpoint_model::amounts;
use setpoint_proto::core::ResourceQuotaStatus;

use crate::World;

/// Returns the status that the quota should have; `None` if it has it, or if its objects could not be read.
pub fn status(world: &World) -> Option<ResourceQuotaStatus> {
    let used = &world.counted.as_ref()?.used;
    let status = &world.status;
    let is_same = status.hard == world.spec.hard && amounts::of_list(&status.used) == *used;
    (!is_same).then(|| ResourceQuotaStatus {
        hard: world.spec.hard.clone(),
        used: amounts::to_list(used),
    })
}
