//! Plan: computes which Pods to claim, create and delete, and which revisions to record.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::HashSet;

use setpoint_controller::{Claim, Plan, Step, claims};
use setpoint_model::{Target, hash};
use setpoint_workload::history::Write;
use setpoint_workload::{PodView, unused_name};

use crate::World;
use crate::nodes::Nodes;

/// The maximum number of creates, and of deletes, of one reconcile; upstream's.
pub const BURST: usize = 250;

/// A write to a Pod or a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Adopt or release a Pod.
    Pod(Claim),
    /// Write a revision.
    Revision(Write),
    /// Create a Pod.
    Create {
        /// Chosen in the plan, so that a retry finds the Pod of an earlier attempt.
        name: String,
        /// The node that it is meant for.
        node: String,
        /// The hash of the template's revision.
        hash: String,
    },
    /// Delete a Pod.
    Delete {
        /// The Pod.
        pod: Target,
        /// Its node.
        node: String,
        /// The state that it was found in.
        found: Found,
    },
}

/// The state of a Pod that is to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It has not ended.
    Alive,
    /// It has failed.
    Failed,
    /// It has succeeded.
    Succeeded,
    /// Its node does not exist, so that no one else would end it.
    Lost,
}

impl Action {
    /// Returns the name of the Pod that the action writes; `None` if it writes a revision.
    pub fn pod(&self) -> Option<&str> {
        match self {
            Self::Create { name, .. } => Some(name),
            Self::Pod(Claim::Adopt(pod) | Claim::Release(pod)) | Self::Delete { pod, .. } => {
                Some(&pod.key.name)
            }
            Self::Revision(_) => None,
        }
    }
}

/// Returns the actions of the first of these stages that has any.
///
/// ```text
/// claim ─▶ record the template ─▶ sync: one Pod a node ─▶ roll ─▶ clean up old revisions
/// ```
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    if world.set.meta.deleting || world.set.selector.is_empty() {
        return plan;
    }
    claim(world, &mut plan);
    if plan.is_empty() {
        let nodes = Nodes::of(world);
        let stages: [fn(&Nodes<'_>, &mut Plan<Action>); 4] = [
            |nodes, plan| nodes.revisions.advance(plan),
            |nodes, plan| nodes.sync(plan),
            |nodes, plan| nodes.roll(plan),
            |nodes, plan| nodes.revisions.clean_up(plan),
        ];
        for stage in stages {
            if plan.is_empty() {
                stage(&nodes, &mut plan);
            }
        }
    }
    plan.look_again_after(world.claimed().filter_map(|pod| world.available_in(pod)));
    plan
}

fn claim(world: &World, plan: &mut Plan<Action>) {
    let pods = world.pods.iter().map(|pod| &**pod);
    for (claim, because) in claims(&*world.set, pods) {
        plan.step(Action::Pod(claim), because);
    }
    let revisions = world.revisions.iter().map(|revision| &**revision);
    for (claim, because) in claims(&*world.set, revisions) {
        plan.step(Action::Revision(Write::Claim(claim)), because);
    }
}

/// The Pods that a stage deletes and the nodes that it creates Pods for.
#[derive(Default)]
pub(crate) struct Changes<'a> {
    deletes: Vec<Step<Action>>,
    creates: Vec<(&'a str, &'static str)>,
}

impl<'a> Changes<'a> {
    pub fn delete(&mut self, node: &str, pod: &PodView, found: Found, because: &'static str) {
        let action = Action::Delete {
            pod: Target::of(&pod.meta),
            node: node.to_owned(),
            found,
        };
        self.deletes.push(Step { action, because });
    }

    pub fn create(&mut self, node: &'a str, because: &'static str) {
        self.creates.push((node, because));
    }

    /// Adds the changes to the plan, deletes first: creates may exceed a quota, and then no further step is started.
    pub fn add_to(self, plan: &mut Plan<Action>, nodes: &Nodes<'_>) {
        let Nodes {
            world, revisions, ..
        } = nodes;
        plan.steps.extend(self.deletes.into_iter().take(BURST));
        let used = world.pods.iter().map(|pod| pod.meta.key.name.clone());
        let mut used: HashSet<_> = used.collect();
        for (node, because) in self.creates.into_iter().take(BURST) {
            // Of the node, so that a retry gives it to the same one even if others have come and gone.
            let mut seed = world.seed ^ u64::from(hash::fnv32a(node.as_bytes()));
            let create = Action::Create {
                name: unused_name(&world.set.prefix(), &mut seed, &mut used),
                node: node.to_owned(),
                hash: revisions.hash().to_owned(),
            };
            plan.step(create, because);
        }
    }
}
