//! Plan: computes which Pods to adopt, release, create and delete.
#![warn(clippy::arithmetic_side_effects)]

use std::cmp::Ordering;
use std::collections::HashSet;

use setpoint_controller::{Claim, Plan, claims};
use setpoint_model::Target;
use setpoint_workload::unused_name;

use crate::ranking::ranked;
use crate::{World, backoff};

/// The maximum number of creates or deletes of one reconcile.
pub const BURST: usize = 500;

/// A write to a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Adopt an orphan.
    Adopt(Target),
    /// Release a Pod that the selector no longer matches.
    Release(Target),
    /// Create a Pod.
    Create {
        /// Chosen in the plan, so that a retry finds the Pod of an earlier attempt.
        name: String,
    },
    /// Delete a Pod.
    Delete(Target),
}

impl Action {
    /// Returns the name of the Pod that the action writes.
    pub fn pod(&self) -> &str {
        match self {
            Self::Create { name } => name,
            Self::Adopt(pod) | Self::Release(pod) | Self::Delete(pod) => &pod.key.name,
        }
    }
}

/// Returns the actions of the first of these stages that has any: claim, delete rejected Pods, scale.
///
/// Rejected Pods are deleted before any is created, so that they do not accumulate if deletes fail.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    if world.set.meta.deleting {
        return plan;
    }
    for stage in [claim, delete_rejected, scale] {
        if plan.is_empty() {
            stage(world, &mut plan);
        }
    }
    plan.look_again_after(world.active().filter_map(|pod| world.available_in(pod)));
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

fn delete_rejected(world: &World, plan: &mut Plan<Action>) {
    for pod in backoff::surplus_rejected(world).into_iter().take(BURST) {
        plan.step(
            Action::Delete(Target::of(&pod.meta)),
            "more Pods rejected by nodes than are kept",
        );
    }
}

fn scale(world: &World, plan: &mut Plan<Action>) {
    let (active, desired) = (world.active().count(), world.set.replicas);
    match active.cmp(&desired) {
        Ordering::Equal => {}
        Ordering::Less => create(world, desired.saturating_sub(active), plan),
        Ordering::Greater => {
            let surplus = active.saturating_sub(desired).min(BURST);
            for pod in ranked(world).iter().take(surplus) {
                plan.step(
                    Action::Delete(Target::of(&pod.meta)),
                    "more Pods than replicas",
                );
            }
        }
    }
}

fn create(world: &World, missing: usize, plan: &mut Plan<Action>) {
    let wait = backoff::wait(world);
    if !wait.is_zero() {
        return plan.look_again(wait);
    }
    let used = world.pods.iter().map(|pod| pod.meta.key.name.clone());
    let (mut used, mut seed): (HashSet<_>, _) = (used.collect(), world.seed);
    for _ in 0..missing.min(BURST) {
        let name = unused_name(&world.set.prefix(), &mut seed, &mut used);
        plan.step(Action::Create { name }, "fewer Pods than replicas");
    }
}
