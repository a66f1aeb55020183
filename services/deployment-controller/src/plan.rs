//! Plan: computes the next writes of a rollout.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::{Plan, claims};

use crate::replica_sets::ReplicaSets;
use crate::{Action, Strategy, World, annotations, progress, recreate, rolling, scaling};

/// Returns the actions of the first of these stages that has any.
///
/// ```text
/// claim ─▶ refresh ─▶ scale proportionally ─▶ roll or recreate ─▶ clean up old sets
///                               └── paused: ─────────────────────────▶┘
/// ```
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    let deployment = &world.deployment;
    if deployment.meta.deleting || deployment.selector.is_empty() {
        return plan;
    }
    let sets = ReplicaSets::of(world);
    claim(world, &mut plan);
    let stages = [refresh, scaling::scale_proportionally, roll, clean_up];
    for stage in stages {
        if plan.is_empty() {
            stage(&sets, &mut plan);
        }
    }
    if let Some(wait) = progress::deadline(deployment, world.now) {
        plan.look_again(wait);
    }
    plan
}

fn claim(world: &World, plan: &mut Plan<Action>) {
    let sets = world.sets.iter().map(|set| &**set);
    for (claim, because) in claims(&*world.deployment, sets) {
        plan.step(claim.into(), because);
    }
}

fn refresh(sets: &ReplicaSets<'_>, plan: &mut Plan<Action>) {
    let Some(set) = sets.new else { return };
    let deployment = sets.deployment;
    let annotations = annotations::refresh(deployment, set, sets.revision());
    if !annotations.is_empty() || set.min_ready_seconds != deployment.min_ready_seconds {
        let refresh = Action::Refresh {
            set: set.target(),
            annotations,
            min_ready_seconds: deployment.min_ready_seconds,
        };
        plan.step(
            refresh,
            "annotations or minReadySeconds of the Deployment changed",
        );
    }
}

fn roll(sets: &ReplicaSets<'_>, plan: &mut Plan<Action>) {
    match sets.deployment.strategy {
        _ if sets.deployment.paused => {}
        Strategy::Recreate => recreate::replace(sets, plan),
        Strategy::Rolling { .. } => rolling::advance(sets, plan),
    }
}

/// Deletes empty old sets beyond `revisionHistoryLimit`, those of the lowest revisions first.
fn clean_up(sets: &ReplicaSets<'_>, plan: &mut Plan<Action>) {
    if !(sets.deployment.paused || progress::is_complete(sets)) {
        return;
    }
    let mut old: Vec<_> = sets.old.iter().filter(|set| !set.meta.deleting).collect();
    old.sort_by_key(|set| (set.revision(), set.meta.created, &set.meta.key));
    let surplus = old.len().saturating_sub(sets.deployment.history_limit);
    for set in old[..surplus].iter().filter(|set| set.is_empty()) {
        plan.step(
            Action::Delete(set.target()),
            "more old ReplicaSets than the history keeps",
        );
    }
}
