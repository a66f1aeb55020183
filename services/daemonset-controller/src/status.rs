//! Status: computes the status of a DaemonSet.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::Outcome;
use setpoint_proto::apps::DaemonSetStatus;
use setpoint_workload::{PodView, count};

use crate::sites::{Site, Sites};
use crate::{Action, World};

/// Returns the status that must be written; `None` if it has not changed.
///
/// After actions that succeeded, `observedGeneration` alone is not written: the next reconcile, which sees the outcome of
/// the actions, writes it together with the new counts.
pub fn status(world: &World, outcome: &Outcome<Action>) -> Option<DaemonSetStatus> {
    let set = &world.set;
    if set.meta.deleting || set.selector.is_empty() {
        return None;
    }
    let sites = Sites::of(world);
    let former = &set.status;
    let status = DaemonSetStatus {
        // Nothing was done for the generation if its template could not be recorded.
        observed_generation: match outcome.failed.is_some() && !sites.revisions.are_current() {
            true => former.observed_generation,
            false => set.meta.generation,
        },
        collision_count: collision_count(&sites),
        conditions: former.conditions.clone(),
        ..counts(&sites)
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

/// Returns the counts. Of each node that should run the set, the Pod that counts is the first: the old one during a surge.
fn counts(sites: &Sites<'_>) -> DaemonSetStatus {
    let Sites {
        world, revisions, ..
    } = sites;
    let all = |of: &dyn Fn(&Site<'_>) -> bool| count(sites.iter().filter(|it| of(it)));
    let pods = |of: &dyn Fn(&PodView) -> bool| {
        all(&|site| site.should_run() && site.pods.first().is_some_and(|pod| of(pod)))
    };
    let desired = all(&|site| site.should_run());
    let available = pods(&|pod| world.is_available(pod));
    let is_misplaced =
        |site: &Site<'_>| site.verdict.is_some() && !site.should_run() && !site.pods.is_empty();
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
fn collision_count(sites: &Sites<'_>) -> Option<i32> {
    let Sites {
        world, revisions, ..
    } = sites;
    let (known, needed) = (
        world.set.status.collision_count,
        world.revision_name.collisions,
    );
    match revisions.is_missing() && needed > known.unwrap_or_default() {
        true => Some(needed),
        false => known,
    }
}
