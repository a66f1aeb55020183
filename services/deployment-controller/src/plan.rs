//! Plan: the next step from the sets there are to the set there should be.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;

use setpoint_controller::{Claim, Plan, claims};
use setpoint_model::Target;

use crate::fleet::Fleet;
use crate::{Set, Strategy, World, annotations, progress, recreate, rolling, scaling};

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make an orphan one's own.
    Adopt(Target),
    /// Give up a set that is selected no more.
    Release(Target),
    /// Create the set of the current template.
    Create {
        /// Follows from the template, so that a repeated attempt finds what the first one made.
        name: String,
        /// The hash of the template, for the labels of the set and its Pods.
        hash: String,
        /// How many Pods it starts with.
        replicas: i32,
        /// What it is told.
        annotations: BTreeMap<String, String>,
    },
    /// Change the number of Pods of a set.
    Scale {
        /// The set.
        set: Target,
        /// How many it had.
        from: i32,
        /// How many it gets.
        to: i32,
        /// For what size of the Deployment.
        annotations: BTreeMap<String, String>,
    },
    /// Bring the set of the current template up to date with what else the Deployment says.
    Refresh {
        /// The set.
        set: Target,
        /// What it is told in addition.
        annotations: BTreeMap<String, String>,
        /// How long its Pods must be ready to be available.
        min_ready_seconds: i32,
    },
    /// Delete an old set that has no Pods.
    Delete(Target),
}

impl Action {
    /// The name of the set that it is about.
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

/// One thing at a time: the first of these that finds something to do ends the round.
///
/// ```text
/// claim ─▶ refresh ─▶ share out a change of size ─▶ roll or recreate ─▶ forget the oldest sets
///                                   └── paused: ────────────────────────▶┘
/// ```
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    let deployment = &world.deployment;
    if deployment.meta.deleting || deployment.selector.is_empty() {
        return plan;
    }
    let fleet = Fleet::of(world);
    claim(world, &mut plan);
    let stages = [refresh, scaling::share_out, roll, forget];
    for stage in stages {
        if plan.is_empty() {
            stage(&fleet, &mut plan);
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

fn refresh(fleet: &Fleet<'_>, plan: &mut Plan<Action>) {
    let Some(set) = fleet.new else { return };
    let deployment = fleet.deployment;
    let annotations = annotations::refreshed(deployment, set, fleet.revision());
    if !annotations.is_empty() || set.min_ready_seconds != deployment.min_ready_seconds {
        let refresh = Action::Refresh {
            set: set.target(),
            annotations,
            min_ready_seconds: deployment.min_ready_seconds,
        };
        plan.step(
            refresh,
            "the Deployment says something else about the set of its template",
        );
    }
}

fn roll(fleet: &Fleet<'_>, plan: &mut Plan<Action>) {
    match fleet.deployment.strategy {
        _ if fleet.deployment.paused => {}
        Strategy::Recreate => recreate::replace(fleet, plan),
        Strategy::Rolling { .. } => rolling::advance(fleet, plan),
    }
}

/// The set of the current template, if there is none and its name is free.
pub(crate) fn create(fleet: &Fleet<'_>, replicas: i32, plan: &mut Plan<Action>) {
    if fleet.new.is_some() || fleet.collides() {
        return;
    }
    let deployment = fleet.deployment;
    let create = Action::Create {
        name: deployment.set_name(),
        hash: deployment.template_hash(),
        replicas,
        annotations: annotations::fresh(deployment, fleet.revision()),
    };
    plan.step(create, "no ReplicaSet has this template");
}

/// Gives a set this size, if it has another.
pub(crate) fn scale(
    fleet: &Fleet<'_>,
    set: &Set,
    to: i32,
    because: &'static str,
    plan: &mut Plan<Action>,
) {
    if set.replicas != to {
        let scale = Action::Scale {
            set: set.target(),
            from: set.replicas,
            to,
            annotations: annotations::size(fleet.deployment),
        };
        plan.step(scale, because);
    }
}

/// Keeps as many old sets as the user wants to be able to go back to; those of the highest revisions.
fn forget(fleet: &Fleet<'_>, plan: &mut Plan<Action>) {
    if !(fleet.deployment.paused || progress::is_complete(fleet)) {
        return;
    }
    let mut old: Vec<_> = fleet.old.iter().filter(|set| !set.meta.deleting).collect();
    old.sort_by_key(|set| (set.revision(), set.meta.created, &set.meta.key));
    let surplus = old.len().saturating_sub(fleet.deployment.history_limit);
    for set in old[..surplus].iter().filter(|set| set.is_empty()) {
        plan.step(
            Action::Delete(set.target()),
            "more old ReplicaSets than the history keeps",
        );
    }
}
