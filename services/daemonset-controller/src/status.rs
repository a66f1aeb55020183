//! Status: computes the status of a DaemonSet.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::Outcome;
use setpoint_proto::apps::DaemonSetStatus;
use setpoint_workload::{PodView, count};

use crate::nodes::{NodePods, Nodes};
use crate::{Action, World};

/// Returns the status that must be written; `None` if it has not changed.
///
/// After actions that succeeded, `observedGeneration` alone is not written: the next reconcile, which sees the outcome
/// of the actions, writes it together with the new counts.
pub fn status(world: &World, outcome: &Outcome<Action>) -> Option<DaemonSetStatus> {
    let set = &world.set;
    if set.meta.deleting || set.selector.is_empty() {
        return None;
    }
    let nodes = Nodes::of(world);
    let former = &set.status;
    let status = DaemonSetStatus {
        // Nothing was done for the generation if its template could not be recorded.
        observed_generation: match outcome.failed.is_some() && !nodes.revisions.are_current() {
            true => former.observed_generation,
            false => set.meta.generation,
        },
        collision_count: collision_count(&nodes),
        conditions: former.conditions.clone(),
        ..counts(&nodes)
    };
    let acted = outcome.failed.is_none() && outcome.done > 0;
    let is_changed = match acted {
        true => without_progress(&status) != without_progress(former),
        false => status != *former,
    };
    is_changed.then_some(status)
}

/// Returns the status without the field whose change alone is not written after an action.
fn without_progress(status: &DaemonSetStatus) -> DaemonSetStatus {
    DaemonSetStatus {
        observed_generation: 0,
        ..status.clone()
    }
}

/// Returns the counts. Of each node that should run the set, the Pod that counts is the first: the old one during a
/// surge.
fn counts(nodes: &Nodes<'_>) -> DaemonSetStatus {
    let Nodes {
        world, revisions, ..
    } = nodes;
    let all = |of: &dyn Fn(&NodePods<'_>) -> bool| count(nodes.iter().filter(|it| of(it)));
    let pods = |of: &dyn Fn(&PodView) -> bool| {
        all(&|on_node| on_node.should_run() && on_node.pods.first().is_some_and(|pod| of(pod)))
    };
    let desired = all(&|on_node| on_node.should_run());
    let available = pods(&|pod| world.is_available(pod));
    let is_misplaced = |on_node: &NodePods<'_>| {
        on_node.placement.is_some() && !on_node.should_run() && !on_node.pods.is_empty()
    };
    DaemonSetStatus {
        desired_number_scheduled: desired,
        current_number_scheduled: pods(&|_| true),
        number_misscheduled: all(&is_misplaced),
        number_ready: pods(&|pod| pod.ready_since.is_some()),
        number_available: available,
        number_unavailable: desired.saturating_sub(available),
        updated_number_scheduled: pods(&|pod| revisions.is_updated(pod)),
        ..Default::default()
    }
}

/// Returns the collision count with which the template's revision got its name.
fn collision_count(nodes: &Nodes<'_>) -> Option<i32> {
    let Nodes {
        world, revisions, ..
    } = nodes;
    let (known, needed) = (
        world.set.status.collision_count,
        world.revision_name.collisions,
    );
    match revisions.is_missing() && needed > known.unwrap_or_default() {
        true => Some(needed),
        false => known,
    }
}
