//! Plan: computes the next writes of a rollout.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;

use setpoint_controller::{Claim, Plan, claims};
use setpoint_model::Target;

use crate::replica_sets::ReplicaSets;
use crate::{ReplicaSetView, Strategy, World, annotations, progress, recreate, rolling, scaling};

/// A write to a ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Adopt an orphan.
    Adopt(Target),
    /// Release a set that the selector no longer matches.
    Release(Target),
    /// Create the set of the current template.
    Create {
        /// Derived from the template, so that a retry finds the set of an earlier attempt.
        name: String,
        /// The hash of the template, for the labels of the set and its Pods.
        hash: String,
        /// The desired number of Pods.
        replicas: i32,
        /// The annotations.
        annotations: BTreeMap<String, String>,
    },
    /// Scale a set.
    Scale {
        /// The set.
        set: Target,
        /// The present desired number of Pods.
        from: i32,
        /// The new desired number of Pods.
        to: i32,
        /// The annotations with the Deployment's size.
        annotations: BTreeMap<String, String>,
    },
    /// Update the annotations and `minReadySeconds` of the set of the current template.
    Refresh {
        /// The set.
        set: Target,
        /// The annotations that change.
        annotations: BTreeMap<String, String>,
        /// Seconds for which a Pod must be ready to count as available.
        min_ready_seconds: i32,
    },
    /// Delete an old set that has no Pods.
    Delete(Target),
}

impl Action {
    pub(crate) fn scale(sets: &ReplicaSets<'_>, set: &ReplicaSetView, to: i32) -> Self {
        Self::Scale {
            set: set.target(),
            from: set.replicas,
            to,
            annotations: annotations::size(sets.deployment),
        }
    }

    /// Returns the name of the set that the action writes.
    pub fn set(&self) -> &str {
        match self {
            Self::Create { name, .. } => name,
            Self::Adopt(set)
            | Self::Release(set)
            | Self::Scale { set, .. }
            | Self::Refresh { set, .. }
            | Self::Delete(set) => &set.key.name,
        }
    }
}

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

impl From<Claim> for Action {
    fn from(claim: Claim) -> Self {
        match claim {
            Claim::Adopt(set) => Self::Adopt(set),
            Claim::Release(set) => Self::Release(set),
        }
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

/// Creates the set of the current template, if it is missing and its name is free.
pub(crate) fn create(sets: &ReplicaSets<'_>, replicas: i32, plan: &mut Plan<Action>) {
    if sets.new.is_some() || sets.collides() {
        return;
    }
    let deployment = sets.deployment;
    let create = Action::Create {
        name: deployment.set_name(),
        hash: deployment.template_hash(),
        replicas,
        annotations: annotations::initial(deployment, sets.revision()),
    };
    plan.step(create, "no ReplicaSet has this template");
}

/// Scales a set, unless it has that size.
pub(crate) fn scale(
    sets: &ReplicaSets<'_>,
    set: &ReplicaSetView,
    to: i32,
    because: &'static str,
    plan: &mut Plan<Action>,
) {
    if set.replicas != to {
        plan.step(Action::scale(sets, set, to), because);
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
