//! Plan: computes which Pods to claim, to stop tracking, to create and to delete.
#![warn(clippy::arithmetic_side_effects)]

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::{Claim, Plan, claims};
use setpoint_model::{Target, time};

use crate::finish::{deadline_in, finish};
use crate::pod::Failures;
use crate::scale::scale;
use crate::tally::{Count, Tally};
use crate::{JobPodView, World};

/// The maximum number of creates or deletes of one reconcile, and of finalizers that it removes.
pub const BURST: usize = 500;

/// A write to a Pod, or the delete of the Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Adopt an orphan, and track it.
    Adopt(Target),
    /// Release a Pod that the selector no longer matches, and stop tracking it.
    Release(Target),
    /// Create a Pod.
    Create {
        /// Chosen in the plan, so that a retry finds the Pod of an earlier attempt.
        name: String,
        /// The completion index.
        index: Option<usize>,
        /// The failures of the index, if they are limited.
        failures: Option<Failures>,
    },
    /// Stop tracking a Pod.
    Untrack(Tracked),
    /// Stop tracking a Pod that no Job counts.
    UntrackStray {
        /// The Pod.
        pod: Tracked,
        /// The uid of the Job that controls it.
        owner: Option<String>,
    },
    /// Delete a Pod. It stays tracked.
    Delete(Target),
    /// Stop tracking a Pod, then delete it.
    Discard(Tracked),
    /// Delete the Job, after its Pods.
    DeleteJob,
}

/// A Pod whose tracking finalizer is to be removed.
#[derive(Clone, PartialEq, Eq)]
pub struct Tracked {
    /// The Pod.
    pub pod: Target,
    /// The finalizers that it keeps; `None` if it is not tracked.
    pub finalizers: Option<Vec<String>>,
}

/// Writes namespace and name only, since plans are printed for users.
impl fmt::Debug for Tracked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.pod, f)
    }
}

impl Tracked {
    fn of(pod: &JobPodView) -> Self {
        let finalizers = pod.is_tracked().then(|| pod.details().finalizers.clone());
        Self {
            pod: Target::of(&pod.base.meta),
            finalizers,
        }
    }
}

impl Action {
    /// Returns the name of the Pod that the action writes.
    pub fn pod(&self) -> Option<&str> {
        match self {
            Self::Create { name, .. } => Some(name),
            Self::Adopt(pod) | Self::Release(pod) | Self::Delete(pod) => Some(&pod.key.name),
            Self::Untrack(it) | Self::UntrackStray { pod: it, .. } | Self::Discard(it) => {
                Some(&it.pod.key.name)
            }
            Self::DeleteJob => None,
        }
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

/// Returns the actions of the next step towards the end of the Job.
///
/// A Job that ends says so in its status before its Pods are deleted, so that it ends in the same way if its spec
/// changes.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    for pod in world.strays.iter().take(BURST) {
        let owner = pod.base.meta.owner.as_ref().map(|owner| owner.uid.clone());
        let action = Action::UntrackStray {
            pod: Tracked::of(pod),
            owner,
        };
        plan.step(action, "its Job is gone or has finished");
    }
    if !world.job.is_managed() {
        expire(world, &mut plan);
        return plan;
    }
    claim(world, &mut plan);
    if plan.is_empty() {
        let tally = Tally::of(world);
        untrack(world, &tally, &mut plan);
        match (world.job.ending(), finish(world, &tally)) {
            (Some(_), _) => stop(world, &tally, &mut plan),
            (None, None) if !world.job.meta.deleting => {
                scale(world, &tally, &mut plan);
                plan.look_again_after(deadline_in(world));
            }
            _ => {}
        }
    }
    plan
}

/// Deletes a finished Job when its time to live is over.
fn expire(world: &World, plan: &mut Plan<Action>) {
    let job = &world.job;
    let finished = job
        .finished()
        .and_then(|end| end.last_transition_time.timestamp());
    let (Some(finished), Some(ttl)) = (finished, job.ttl_seconds) else {
        return;
    };
    let left = time::seconds_after(finished, ttl).duration_since(world.now);
    match Duration::try_from(left) {
        _ if job.meta.deleting => {}
        Ok(left) if !left.is_zero() => plan.look_again(left),
        _ => plan.step(Action::DeleteJob, "its time to live after its end is over"),
    }
}

/// A Job that is being deleted releases no Pod: the garbage collector finds them by their owner.
fn claim(world: &World, plan: &mut Plan<Action>) {
    if world.job.meta.deleting {
        return;
    }
    let pods = world.pods.iter().map(|pod| &**pod);
    for (claim, because) in claims(&*world.job, pods) {
        plan.step(claim.into(), because);
    }
}

/// Returns whether a tracked Pod is counted in the stored status, or counts for nothing.
fn is_settled(world: &World, tally: &Tally<'_>, pod: &JobPodView) -> bool {
    let ending = world.job.ending().map(|(ending, _)| ending);
    match tally.count(pod, ending) {
        None => false,
        Some(Count::Nothing) => true,
        Some(Count::Success | Count::Failure) => tally.is_stored(pod),
    }
}

/// Removes the finalizers of Pods whose end is stored. Pods that are still to be stopped keep it until then.
fn untrack(world: &World, tally: &Tally<'_>, plan: &mut Plan<Action>) {
    let stops = world.job.ending().is_some();
    let ended = world
        .tracked()
        .filter(|pod| !(stops && pod.base.is_active()));
    let settled = ended.filter(|pod| is_settled(world, tally, pod));
    for pod in settled.take(BURST) {
        plan.step(
            Action::Untrack(Tracked::of(pod)),
            "its end is in the status, or does not count",
        );
    }
}

/// Deletes the active Pods of a Job that ends.
fn stop(world: &World, tally: &Tally<'_>, plan: &mut Plan<Action>) {
    for pod in world.active().take(BURST) {
        let action = match !pod.is_tracked() || is_settled(world, tally, pod) {
            true => discard(pod),
            false => Action::Delete(Target::of(&pod.base.meta)),
        };
        plan.step(action, "the Job has succeeded or failed");
    }
}

/// Returns the action that deletes an active Pod which counts for nothing, or is counted already.
///
/// The finalizer goes first: an active Pod without it is deleted whatever comes between.
pub(crate) fn discard(pod: &Arc<JobPodView>) -> Action {
    Action::Discard(Tracked::of(pod))
}
