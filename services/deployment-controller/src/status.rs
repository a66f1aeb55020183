//! Status: what to tell the user about a Deployment.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::Outcome;
use setpoint_proto::apps::DeploymentStatus;

use crate::fleet::Fleet;
use crate::{Action, Set, World, progress};

/// What is written back to a Deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The revision of the current template, for the annotation that `kubectl rollout` reads.
    pub revision: Option<i64>,
    /// The status.
    pub status: DeploymentStatus,
}

/// What the user should know and was not told yet.
pub fn status(world: &World, outcome: &Outcome<Action>) -> Option<Report> {
    let fleet = Fleet::of(world);
    let deployment = fleet.deployment;
    let mut status = counts(&fleet);
    // Observed is what was acted upon: a round that failed has not done what this generation asks.
    status.observed_generation = match outcome.failed {
        None => deployment.meta.generation,
        Some(_) => deployment.status.observed_generation,
    };
    status.conditions = match deployment.meta.deleting {
        true => deployment.status.conditions.clone(),
        false => progress::conditions(world, &fleet, &status, outcome),
    };
    status.collision_count = collisions(&fleet);
    let known = deployment.meta.annotation(crate::annotations::REVISION);
    let revision = fleet
        .new
        .map(Set::revision)
        .filter(|revision| *revision > 0);
    let renumbered = revision.is_some_and(|revision| known != Some(&revision.to_string()));
    (renumbered || status != deployment.status).then_some(Report { revision, status })
}

/// How many Pods there are of which kind.
pub(crate) fn counts(fleet: &Fleet<'_>) -> DeploymentStatus {
    let available = fleet.sum(|set| set.status.available_replicas);
    let terminating = |set: &Set| set.status.terminating_replicas.unwrap_or_default();
    DeploymentStatus {
        replicas: fleet.sum(|set| set.status.replicas),
        updated_replicas: fleet.new.map_or(0, |set| set.status.replicas),
        ready_replicas: fleet.sum(|set| set.status.ready_replicas),
        available_replicas: available,
        unavailable_replicas: fleet
            .sum(|set| set.replicas)
            .saturating_sub(available)
            .max(0),
        terminating_replicas: Some(fleet.sum(terminating)),
        ..Default::default()
    }
}

/// Counted up once for a name that another has, which gives the next round another name.
fn collisions(fleet: &Fleet<'_>) -> Option<i32> {
    let deployment = fleet.deployment;
    let count = deployment.status.collision_count;
    let wants_name = !(deployment.paused || deployment.meta.deleting);
    if wants_name && fleet.collides() {
        Some(count.unwrap_or_default().wrapping_add(1))
    } else {
        count
    }
}
