//! Status: computes the status of a StatefulSet.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::Outcome;
use setpoint_proto::apps::StatefulSetStatus;
use setpoint_workload::{PodView, count};

use crate::rollout::Rollout;
use crate::world::is_ready;
use crate::{Action, Strategy, World};

/// Returns the status that must be written; `None` if it has not changed, or while the revision of the template is not
/// the newest one: a status of the new generation with the revisions of the old one would say that the update is
/// complete.
pub fn status(world: &World, _: &Outcome<Action>) -> Option<StatefulSetStatus> {
    let rollout = Rollout::of(world)?;
    let set = &world.set;
    let pods = world.members();
    let members = |of: &dyn Fn(&PodView) -> bool| count(pods.values().filter(|pod| of(pod)));
    let mut status = StatefulSetStatus {
        observed_generation: set.meta.generation,
        replicas: members(&|_| true),
        ready_replicas: members(&is_ready),
        available_replicas: members(&|pod| is_ready(pod) && is_available(world, pod)),
        current_replicas: members(&|pod| rollout.is_current(pod) && !pod.meta.deleting),
        updated_replicas: members(&|pod| rollout.is_updated(pod) && !pod.meta.deleting),
        current_revision: rollout.current.name().to_owned(),
        update_revision: rollout.update.name().to_owned(),
        collision_count: Some(collisions(world, &rollout)),
        conditions: set.status.conditions.clone(),
    };
    complete_update(world, &mut status);
    (status != set.status).then_some(status)
}

/// Makes the updated revision the current one when all Pods are of it and ready.
fn complete_update(world: &World, status: &mut StatefulSetStatus) {
    let wanted = &world.set.ordinals;
    let wanted = wanted.end.saturating_sub(wanted.start);
    let mut counts = [
        status.updated_replicas,
        status.ready_replicas,
        status.replicas,
    ]
    .into_iter();
    let is_rolling = world.set.strategy != Strategy::OnDelete;
    if is_rolling && counts.all(|count| i64::from(count) == wanted) {
        status.current_replicas = status.updated_replicas;
        status.current_revision.clone_from(&status.update_revision);
    }
}

/// Returns whether a Pod is available. Unlike for updates, a terminating one counts.
fn is_available(world: &World, pod: &PodView) -> bool {
    world.available_in(pod).is_some_and(|wait| wait.is_zero())
}

/// Returns the collision count, which is incremented if the name of the new revision was taken.
fn collisions(world: &World, rollout: &Rollout<'_>) -> i32 {
    let name = &world.revision_name;
    match rollout.update.name() == name.name {
        true => name.collisions,
        false => world.set.status.collision_count.unwrap_or_default(),
    }
}
