//! Recreate: every old Pod is gone before the first new one is made, for those who cannot run beside each other.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::Plan;

use crate::fleet::Fleet;
use crate::plan::{create, scale};
use crate::{Action, Set};

pub(crate) fn replace(fleet: &Fleet<'_>, plan: &mut Plan<Action>) {
    for set in &fleet.old {
        scale(fleet, set, 0, "Pods of an old template", plan);
    }
    let gone = |set: &&Set| set.is_empty();
    if !plan.is_empty() || !fleet.old.iter().all(gone) {
        return;
    }
    let replicas = fleet.deployment.replicas;
    match fleet.new {
        Some(new) => scale(fleet, new, replicas, "the old Pods are gone", plan),
        None => create(fleet, replicas, plan),
    }
}
