//! The `Recreate` strategy: all old Pods end before the first new one is created.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::Plan;

use crate::action::{create, scale};
use crate::replica_sets::ReplicaSets;
use crate::{Action, ReplicaSetView};

pub(crate) fn replace(sets: &ReplicaSets<'_>, plan: &mut Plan<Action>) {
    for set in &sets.old {
        scale(sets, set, 0, "Pods of an old template", plan);
    }
    let is_empty = |set: &&ReplicaSetView| set.is_empty();
    if !plan.is_empty() || !sets.old.iter().all(is_empty) {
        return;
    }
    let replicas = sets.deployment.replicas;
    match sets.new {
        Some(new) => scale(sets, new, replicas, "the old Pods are gone", plan),
        None => create(sets, replicas, plan),
    }
}
