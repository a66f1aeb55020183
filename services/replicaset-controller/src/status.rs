//! Status: computes the status of a ReplicaSet.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::{Outcome, events};
use setpoint_model::condition::{self, TRUE};
use setpoint_model::selector::Selector;
use setpoint_proto::apps::{ReplicaSetCondition, ReplicaSetStatus};
use setpoint_workload::{PodView, count};

use crate::{Action, World};

const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Returns the status that must be written; `None` if it has not changed.
///
/// After actions that succeeded, `observedGeneration` alone is not written: the next reconcile, which sees the outcome
/// of the actions, writes it together with the new counts.
pub fn status(world: &World, outcome: &Outcome<Action>) -> Option<ReplicaSetStatus> {
    let set = &world.set;
    let full = Selector::from_labels(&set.template.metadata.labels);
    let active = |of: &dyn Fn(&PodView) -> bool| count(world.active().filter(|pod| of(pod)));
    let status = ReplicaSetStatus {
        replicas: active(&|_| true),
        fully_labeled_replicas: active(&|pod| full.matches(&pod.labels)),
        ready_replicas: active(&|pod| pod.ready_since.is_some()),
        available_replicas: active(&|pod| {
            world.available_in(pod).is_some_and(|wait| wait.is_zero())
        }),
        terminating_replicas: set.counts_terminating.then(|| count(world.terminating())),
        observed_generation: set.meta.generation,
        conditions: conditions(world, outcome),
    };
    let acted = outcome.failed.is_none() && outcome.done > 0;
    let is_changed = match acted {
        true => without_progress(&status) != without_progress(&set.status),
        false => status != set.status,
    };
    is_changed.then_some(status)
}

/// Returns the status without the fields whose change alone is not written after an action.
fn without_progress(status: &ReplicaSetStatus) -> ReplicaSetStatus {
    ReplicaSetStatus {
        observed_generation: 0,
        terminating_replicas: Some(status.terminating_replicas.unwrap_or_default()),
        ..status.clone()
    }
}

/// Returns the conditions: `ReplicaFailure` is set by the first failure and removed by the next reconcile that
/// succeeds.
fn conditions(world: &World, outcome: &Outcome<Action>) -> Vec<ReplicaSetCondition> {
    let mut conditions = world.set.status.conditions.clone();
    let failed = outcome
        .failed
        .as_ref()
        .filter(|error| events::is_reported(error));
    match (failed, reason(outcome)) {
        (Some(error), Some(reason)) if condition::get(&conditions, REPLICA_FAILURE).is_none() => {
            conditions.push(ReplicaSetCondition {
                r#type: REPLICA_FAILURE.to_owned(),
                status: TRUE.to_owned(),
                reason: reason.to_owned(),
                message: error.message.clone(),
                last_transition_time: world.now.into(),
            });
        }
        _ if outcome.failed.is_none() => conditions.retain(|known| known.r#type != REPLICA_FAILURE),
        _ => {}
    }
    conditions
}

/// Returns the reason of a failure. All actions of a plan are of one kind.
fn reason(outcome: &Outcome<Action>) -> Option<&'static str> {
    match outcome.plan.steps.first()?.action {
        Action::Create { .. } => Some("FailedCreate"),
        Action::Delete(_) => Some("FailedDelete"),
        Action::Adopt(_) | Action::Release(_) => None,
    }
}
