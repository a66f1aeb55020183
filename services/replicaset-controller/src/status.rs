//! Status: what to tell the user about a set.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::Outcome;
use setpoint_model::condition::{self, TRUE};
use setpoint_model::selector::Selector;
use setpoint_proto::apps::{ReplicaSetCondition, ReplicaSetStatus};
use setpoint_proto::{ApiError, Retry};

use crate::{Action, Pod, World};

const REPLICA_FAILURE: &str = "ReplicaFailure";

/// What the user should know and was not told yet.
///
/// A round that acted, and has no news but that it did, leaves the report to the next one, which sees what became of
/// it: one write instead of two.
pub fn status(world: &World, outcome: &Outcome<Action>) -> Option<ReplicaSetStatus> {
    let set = &world.set;
    let full = Selector::from_labels(&set.template.metadata.labels);
    let count = |of: &dyn Fn(&Pod) -> bool| number(world.active().filter(|pod| of(pod)).count());
    let status = ReplicaSetStatus {
        replicas: count(&|_| true),
        fully_labeled_replicas: count(&|pod| full.matches(&pod.labels)),
        ready_replicas: count(&|pod| pod.ready_since.is_some()),
        available_replicas: count(&|pod| {
            world.available_in(pod).is_some_and(|wait| wait.is_zero())
        }),
        terminating_replicas: Some(number(world.terminating().count())),
        observed_generation: set.meta.generation,
        conditions: conditions(world, outcome),
    };
    let acted = outcome.failed.is_none() && outcome.done > 0;
    let is_news = match acted {
        true => news(&status) != news(&set.status),
        false => status != set.status,
    };
    is_news.then_some(status)
}

/// What is news even in the middle of things.
fn news(status: &ReplicaSetStatus) -> ReplicaSetStatus {
    ReplicaSetStatus {
        observed_generation: 0,
        terminating_replicas: Some(status.terminating_replicas.unwrap_or_default()),
        ..status.clone()
    }
}

/// `ReplicaFailure` appears with the first failure and stays as it is until a round goes well.
fn conditions(world: &World, outcome: &Outcome<Action>) -> Vec<ReplicaSetCondition> {
    let mut conditions = world.set.status.conditions.clone();
    let failed = outcome.failed.as_ref().filter(|error| is_failure(error));
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

/// Returns whether an error is one to tell the user about: not if a second look settles it, nor in a namespace that is being
/// deleted, where nothing needs to be created.
pub(crate) fn is_failure(error: &ApiError) -> bool {
    error.reason.retry() != Retry::AfterRefresh && !error.is_namespace_terminating()
}

/// Returns the reason of a failure. A plan never creates and deletes at once.
fn reason(outcome: &Outcome<Action>) -> Option<&'static str> {
    match outcome.plan.steps.first()?.action {
        Action::Create { .. } => Some("FailedCreate"),
        Action::Delete(_) => Some("FailedDelete"),
        Action::Adopt(_) | Action::Release(_) => None,
    }
}

/// Counts are 32 bits wide on the wire; no set has more Pods than that.
fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
