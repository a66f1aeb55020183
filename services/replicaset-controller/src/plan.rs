//! Plan: what to do about the difference between the Pods there are and the Pods there should be.
#![warn(clippy::arithmetic_side_effects)]

use std::cmp::Ordering;
use std::collections::HashSet;

use setpoint_controller::{Claim, Plan, claims};
use setpoint_model::{Target, names};

use crate::ranking::ranked;
use crate::{World, backoff};

/// Pods created or deleted in one round at most; the next round goes on.
pub const BURST: usize = 500;

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make an orphan one's own.
    Adopt(Target),
    /// Give up a Pod that is selected no more.
    Release(Target),
    /// Create a Pod of this name.
    Create {
        /// Chosen here, so that a repeated attempt finds what the first one made.
        name: String,
    },
    /// Delete a Pod.
    Delete(Target),
}

impl Action {
    /// The name of the Pod that it is about.
    pub fn pod(&self) -> &str {
        match self {
            Self::Create { name } => name,
            Self::Adopt(pod) | Self::Release(pod) | Self::Delete(pod) => &pod.key.name,
        }
    }
}

/// First it is settled which Pods belong to the set, then surplus rejected Pods go, and only then, in another round, it is
/// settled how many are missing: while rejected Pods cannot be deleted, none are added to them.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    if world.set.meta.deleting {
        return plan;
    }
    for stage in [claim, forget, resize] {
        if plan.is_empty() {
            stage(world, &mut plan);
        }
    }
    let waits = world.active().filter_map(|pod| world.available_in(pod));
    if let Some(wait) = waits.filter(|wait| !wait.is_zero()).min() {
        plan.look_again(wait);
    }
    plan
}

fn claim(world: &World, plan: &mut Plan<Action>) {
    let pods = world
        .pods
        .iter()
        .map(|pod| &**pod)
        .filter(|pod| pod.is_active());
    for (claim, because) in claims(&*world.set, pods) {
        plan.step(claim.into(), because);
    }
}

impl From<Claim> for Action {
    fn from(claim: Claim) -> Self {
        match claim {
            Claim::Adopt(pod) => Self::Adopt(pod),
            Claim::Release(pod) => Self::Release(pod),
        }
    }
}

fn forget(world: &World, plan: &mut Plan<Action>) {
    for pod in backoff::surplus(world).into_iter().take(BURST) {
        plan.step(
            Action::Delete(Target::of(&pod.meta)),
            "more Pods rejected by nodes than are kept",
        );
    }
}

fn resize(world: &World, plan: &mut Plan<Action>) {
    let (active, wanted) = (world.active().count(), world.set.replicas);
    match active.cmp(&wanted) {
        Ordering::Equal => {}
        Ordering::Less => grow(world, wanted.saturating_sub(active), plan),
        Ordering::Greater => {
            let surplus = active.saturating_sub(wanted).min(BURST);
            for pod in ranked(world).iter().take(surplus) {
                plan.step(
                    Action::Delete(Target::of(&pod.meta)),
                    "more Pods than replicas",
                );
            }
        }
    }
}

fn grow(world: &World, missing: usize, plan: &mut Plan<Action>) {
    let wait = backoff::wait(world);
    if !wait.is_zero() {
        return plan.look_again(wait);
    }
    for name in unused_names(world).take(missing.min(BURST)) {
        plan.step(Action::Create { name }, "fewer Pods than replicas");
    }
}

fn unused_names(world: &World) -> impl Iterator<Item = String> {
    let mut used: HashSet<_> = world
        .pods
        .iter()
        .map(|pod| pod.meta.key.name.clone())
        .collect();
    let prefix = world.set.prefix();
    let seeds = (0..).map(|n| world.seed.wrapping_add(n));
    seeds
        .map(move |seed| names::child(&prefix, &names::suffix(seed)))
        .filter(move |name| used.insert(name.clone()))
}
