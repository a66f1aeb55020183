//! Status: computes the status of a Deployment.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::Outcome;
use setpoint_proto::apps::DeploymentStatus;

use crate::replica_sets::ReplicaSets;
use crate::{Action, ReplicaSetView, World, progress};

/// Returns the status that must be written; `None` if neither it nor [`revision`] has changed.
pub fn status(world: &World, outcome: &Outcome<Action>) -> Option<DeploymentStatus> {
    let sets = ReplicaSets::of(world);
    let deployment = sets.deployment;
    let mut status = sets.counts();
    // A generation counts as observed once its actions succeeded.
    status.observed_generation = match outcome.failed {
        None => deployment.meta.generation,
        Some(_) => deployment.status.observed_generation,
    };
    status.conditions = match deployment.meta.deleting {
        true => deployment.status.conditions.clone(),
        false => progress::conditions(world, &sets, &status, outcome),
    };
    status.collision_count = collision_count(&sets);
    let present = deployment.meta.annotation(crate::annotations::REVISION);
    let revision = revision(world).map(|revision| revision.to_string());
    let renumbered = revision.is_some_and(|revision| present != Some(&revision));
    (renumbered || status != deployment.status).then_some(status)
}

/// Returns the revision of the current template, for the annotation that `kubectl rollout` reads.
pub fn revision(world: &World) -> Option<i64> {
    let new = ReplicaSets::of(world).new;
    new.map(ReplicaSetView::revision)
        .filter(|revision| *revision > 0)
}

/// Returns the collision count, incremented if the name of the new set is taken.
fn collision_count(sets: &ReplicaSets<'_>) -> Option<i32> {
    let deployment = sets.deployment;
    let count = deployment.status.collision_count;
    let needs_name = !(deployment.paused || deployment.meta.deleting);
    if needs_name && sets.collides() {
        Some(count.unwrap_or_default().wrapping_add(1))
    } else {
        count
    }
}
