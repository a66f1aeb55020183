//! Plan: computes which Pods, claims and revisions to create, change and delete.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;
use std::ops::ControlFlow::{self, Break, Continue};

use setpoint_controller::{Claim, Plan, Step, claims};
use setpoint_model::Target;
use setpoint_model::owner::Reference;
use setpoint_workload::history::Write;
use setpoint_workload::{Phase, PodView, RevisionView};

use crate::claim::Owners;
use crate::rollout::Rollout;
use crate::world::is_ready;
use crate::{Action, World, pod};

/// The maximum number of steps for Pods of one reconcile, give or take the claims of one Pod.
pub const BURST: usize = 500;

/// Returns the steps of the first of these stages that has any: ownership, the revision of the template, Pods and their
/// claims. Surplus revisions are deleted together with the steps for Pods, which do not need them.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    if world.set.meta.deleting {
        return plan;
    }
    claim(world, &mut plan);
    if plan.is_empty() {
        match Rollout::of(world) {
            Some(rollout) => {
                Pods::new(world, &rollout, &mut plan).plan();
                truncate_history(world, &rollout, &mut plan);
                // It fails, and no step after it is started.
                let fails = |step: &Step<Action>| matches!(step.action, Action::AwaitClaim { .. });
                plan.steps.sort_by_key(fails);
            }
            None => revise(world, &mut plan),
        }
    }
    let pods = world.members();
    plan.look_again_after(pods.values().filter_map(|pod| world.available_in(pod)));
    plan
}

fn claim(world: &World, plan: &mut Plan<Action>) {
    for (claim, because) in claims(&*world.set, world.pods.iter().map(|pod| &**pod)) {
        let action = match claim {
            Claim::Adopt(pod) => Action::Adopt(pod),
            Claim::Release(pod) => Action::Release(pod),
        };
        plan.step(action, because);
    }
    let revisions = world.revisions.iter().map(|revision| &**revision);
    for (claim, because) in claims(&*world.set, revisions) {
        plan.step(Action::Revision(Write::Claim(claim)), because);
    }
}

fn revise(world: &World, plan: &mut Plan<Action>) {
    let change = world.history().change(&world.set.snapshot);
    if let Some((write, because)) = change.write(&world.revision_name) {
        plan.step(Action::Revision(write), because);
    }
}

fn truncate_history(world: &World, rollout: &Rollout<'_>, plan: &mut Plan<Action>) {
    let is_live = |revision: &RevisionView| rollout.is_live(revision);
    for revision in world.history().surplus(world.set.history_limit, is_live) {
        let delete = Write::Delete(Target::of(&revision.meta));
        plan.step(Action::Revision(delete), "more old revisions than are kept");
    }
}

/// Plans the steps for Pods and their claims. `Break` ends the plan, or, for a single Pod, says that others wait for
/// it.
struct Pods<'a> {
    world: &'a World,
    rollout: &'a Rollout<'a>,
    plan: &'a mut Plan<Action>,
    pods: BTreeMap<i64, &'a PodView>,
    ordered: bool,
}

impl<'a> Pods<'a> {
    fn new(world: &'a World, rollout: &'a Rollout<'a>, plan: &'a mut Plan<Action>) -> Self {
        Self {
            world,
            rollout,
            plan,
            pods: world.members(),
            ordered: !world.set.parallel,
        }
    }

    fn plan(mut self) {
        if self.scale_up().is_continue() && self.scale_down().is_continue() {
            self.update();
        }
    }

    fn scale_up(&mut self) -> ControlFlow<()> {
        for ordinal in self.world.set.ordinals.clone() {
            let done = match self.pods.get(&ordinal) {
                Some(pod) => self.keep(ordinal, pod),
                None => self.create(ordinal),
            };
            if done.is_break() && self.ordered || self.plan.steps.len() >= BURST {
                return Break(());
            }
        }
        Continue(())
    }

    /// Plans the steps for an ordinal without a Pod. Claims are created first, so that a Pod never waits for a claim
    /// that could not be created.
    fn create(&mut self, ordinal: i64) -> ControlFlow<()> {
        let owners = Owners::new(&self.world.set, ordinal, None);
        let mut claims = self.world.claims_of(ordinal);
        if claims.any(|claim| owners.is_of_earlier_pod(claim)) {
            return Break(());
        }
        let missing = self.create_claims(ordinal);
        self.own_claims(ordinal, None);
        let mut claims = self.world.claims_of(ordinal);
        if let Some(claim) = claims.find(|claim| claim.meta.deleting) {
            let claim = claim.meta.key.name.clone();
            let action = Action::AwaitClaim { ordinal, claim };
            self.plan.step(action, "its claim is being deleted");
        } else if !missing {
            let revision = self.rollout.revision_of_new_pod(ordinal).name().to_owned();
            let name = self.world.set.pod_name(ordinal);
            let action = Action::Create {
                name,
                ordinal,
                revision,
            };
            self.plan.step(action, "no Pod has this ordinal");
        }
        Break(())
    }

    fn keep(&mut self, ordinal: i64, pod: &'a PodView) -> ControlFlow<()> {
        if pod.phase.has_ended() {
            self.delete(pod, "a Pod that has ended is replaced");
            return Break(());
        }
        let blocks = self.ordered && !(is_ready(pod) && self.world.is_available(pod));
        if pod.phase == Phase::Pending {
            self.create_claims(ordinal);
        }
        if pod.phase == Phase::Pending || !blocks {
            self.own_claims(ordinal, Some(pod));
        }
        if blocks {
            return Break(());
        }
        if !pod.meta.deleting && !pod::is_intact(&self.world.set, pod, ordinal) {
            let pod = Target::of(&pod.meta);
            let because = "its labels or volumes are not those of its ordinal";
            self.plan.step(Action::Repair { pod, ordinal }, because);
        }
        Continue(())
    }

    /// Plans the creation of the missing claims of an ordinal. Returns whether there are any.
    fn create_claims(&mut self, ordinal: i64) -> bool {
        let before = self.plan.steps.len();
        for claim in self.world.claim_names(ordinal) {
            if !self.world.claims.contains_key(&claim) {
                let action = Action::CreateClaim { claim, ordinal };
                self.plan.step(action, "its Pod needs this claim");
            }
        }
        self.plan.steps.len() > before
    }

    /// Plans the owners of the claims of an ordinal. Returns whether any must change.
    fn own_claims(&mut self, ordinal: i64, pod: Option<&PodView>) -> bool {
        let owners = Owners::new(&self.world.set, ordinal, pod);
        let before = self.plan.steps.len();
        for claim in self.world.claims_of(ordinal) {
            if let Some(owners) = owners.changed(claim) {
                let action = Action::OwnClaim {
                    claim: Target::of(&claim.meta),
                    ordinal,
                    owners: owners.into_iter().map(Reference).collect(),
                };
                self.plan.step(action, "the retention policy of claims");
            }
        }
        self.plan.steps.len() > before
    }

    /// Deletes the Pods whose ordinals are not wanted. Those of which claims get owners are deleted after that, so that
    /// the claims are deleted with them.
    fn scale_down(&mut self) -> ControlFlow<()> {
        let pods = self.pods.clone();
        let condemned = pods.iter().rev();
        let condemned = condemned.filter(|(it, _)| !self.world.set.ordinals.contains(it));
        let condemned: Vec<_> = condemned.map(|(ordinal, pod)| (*ordinal, *pod)).collect();
        let mut owned = Vec::new();
        for (ordinal, pod) in &condemned {
            owned.push(!self.own_claims(*ordinal, Some(pod)));
        }
        let unhealthy = condemned.iter().rev().map(|(_, pod)| *pod);
        let unhealthy = unhealthy.clone().find(|pod| !self.world.is_available(pod));
        for ((_, pod), owned) in condemned.iter().zip(owned) {
            let healthy = is_ready(pod) && self.world.is_available(pod);
            // Unlike upstream, no one waits for a Pod that has ended: it would be forever if there are two of them.
            let is_next = healthy
                || pod.phase.has_ended()
                || unhealthy.is_some_and(|first| first.meta == pod.meta);
            if owned && (is_next || !self.ordered) {
                self.delete(pod, "more Pods than replicas");
            }
            if self.ordered || self.plan.steps.len() >= BURST {
                return Break(());
            }
        }
        Continue(())
    }

    fn update(&mut self) {
        for pod in self.rollout.replaced().into_iter().take(BURST) {
            self.delete(pod, "its template is that of an old revision");
        }
    }

    fn delete(&mut self, pod: &PodView, because: &'static str) {
        if !pod.meta.deleting {
            self.plan
                .step(Action::Delete(Target::of(&pod.meta)), because);
        }
    }
}
