//! Plan: what to do about the difference between the Pods there are and the Pods there should be.

use std::cmp::{Ordering, Reverse};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use setpoint_machinery::Plan;
use setpoint_model::{Target, names};

use crate::{Pod, World};

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

/// First it is settled which Pods belong to the set, and only then, in another round, how many are missing.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    if world.set.meta.deleting {
        return plan;
    }
    claim(world, &mut plan);
    if plan.steps.is_empty() {
        resize(world, &mut plan);
    }
    let waits = world.active().filter_map(|pod| world.available_in(pod));
    if let Some(wait) = waits.filter(|wait| !wait.is_zero()).min() {
        plan.look_again(wait);
    }
    plan
}

fn claim(world: &World, plan: &mut Plan<Action>) {
    for pod in world.pods.iter().filter(|pod| pod.is_active()) {
        let owned = pod.meta.is_owned_by(&world.set.meta.uid);
        match (owned, world.set.selector.matches(&pod.labels)) {
            (true, false) => plan.step(
                Action::Release(Target::of(&pod.meta)),
                "its labels left the selector",
            ),
            (false, true) if pod.meta.owner.is_none() => {
                plan.step(
                    Action::Adopt(Target::of(&pod.meta)),
                    "an orphan that the selector matches",
                );
            }
            _ => {}
        }
    }
}

fn resize(world: &World, plan: &mut Plan<Action>) {
    let (active, wanted) = (world.active().count(), world.set.replicas);
    match active.cmp(&wanted) {
        Ordering::Equal => {}
        Ordering::Less => {
            for name in unused_names(world).take((wanted - active).min(BURST)) {
                plan.step(Action::Create { name }, "fewer Pods than replicas");
            }
        }
        Ordering::Greater => {
            for pod in ranked(world).iter().take((active - wanted).min(BURST)) {
                plan.step(
                    Action::Delete(Target::of(&pod.meta)),
                    "more Pods than replicas",
                );
            }
        }
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

/// Active Pods, those first that are missed least. The uid comes last: without it the order of the cache would decide.
fn ranked(world: &World) -> Vec<&Arc<Pod>> {
    let mut crowd: HashMap<_, _> = world
        .neighbours
        .iter()
        .map(|(node, pods)| (&**node, *pods))
        .collect();
    for node in world.active().filter_map(|pod| pod.node.as_deref()) {
        *crowd.entry(node).or_default() += 1;
    }
    let crowded = |pod: &Pod| {
        pod.node
            .as_deref()
            .and_then(|node| crowd.get(node).copied())
    };
    let mut pods: Vec<_> = world.active().collect();
    pods.sort_by_cached_key(|pod| {
        (
            pod.node.is_some(),
            pod.phase,
            pod.ready_since.is_some(),
            pod.deletion_cost,
            Reverse(crowded(pod)),
            Reverse(pod.ready_since),
            Reverse(pod.restarts),
            Reverse(pod.meta.created),
            pod.meta.uid.clone(),
        )
    });
    pods
}
