//! How a rollout fares, in the conditions by which `kubectl rollout status` and people judge it.
#![warn(clippy::arithmetic_side_effects)]

use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::{Outcome, Step};
use setpoint_model::condition::{self, FALSE, TRUE, UNKNOWN};
use setpoint_proto::apps::{DeploymentCondition, DeploymentStatus};
use setpoint_proto::{ApiError, Reason, Retry};

use crate::fleet::Fleet;
use crate::status::counts;
use crate::{Action, Deployment, World};

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const REPLICA_FAILURE: &str = "ReplicaFailure";

const PAUSED: &str = "DeploymentPaused";
const RESUMED: &str = "DeploymentResumed";
const CREATED: &str = "NewReplicaSetCreated";
const NOT_CREATED: &str = "ReplicaSetCreateError";
const FOUND: &str = "FoundNewReplicaSet";
const UPDATED: &str = "ReplicaSetUpdated";
const DONE: &str = "NewReplicaSetAvailable";
const LATE: &str = "ProgressDeadlineExceeded";

/// What a condition shall say.
struct Statement {
    kind: &'static str,
    status: &'static str,
    reason: String,
    message: String,
}

/// Do all Pods have the current template, and are as many as wanted available?
pub(crate) fn is_complete(fleet: &Fleet<'_>) -> bool {
    has_all(fleet.deployment, &counts(fleet))
}

/// How long until the rollout is late, while that is still to be seen.
pub(crate) fn deadline(deployment: &Deployment, now: Timestamp) -> Option<Duration> {
    let current = condition::get(&deployment.status.conditions, PROGRESSING)?;
    let ended = matches!(current.reason.as_str(), DONE | LATE | PAUSED);
    let left = time_left(deployment, current, now)?;
    (!ended && !left.is_zero()).then_some(left)
}

/// The conditions as they should be now, beside these counts.
pub(crate) fn conditions(
    world: &World,
    fleet: &Fleet<'_>,
    counts: &DeploymentStatus,
    outcome: &Outcome<Action>,
) -> Vec<DeploymentCondition> {
    let mut conditions = fleet.deployment.status.conditions.clone();
    note(
        &mut conditions,
        availability(fleet.deployment, counts),
        world.now,
    );
    if fleet.deployment.deadline.is_none() {
        conditions.retain(|condition| condition.r#type != PROGRESSING);
    } else if let Some(progress) = progress(world, fleet, counts, outcome) {
        // Each step forward starts the clock anew, though it says the same as the last.
        let write = if progress.reason == UPDATED {
            replace
        } else {
            note
        };
        write(&mut conditions, progress, world.now);
    }
    match failure(fleet) {
        Some(failure) => note(&mut conditions, failure, world.now),
        None => conditions.retain(|condition| condition.r#type != REPLICA_FAILURE),
    }
    conditions
}

fn availability(deployment: &Deployment, counts: &DeploymentStatus) -> Statement {
    let enough = counts.available_replicas >= deployment.min_available();
    let (status, reason, verb) = match enough {
        true => (TRUE, "MinimumReplicasAvailable", "has"),
        false => (FALSE, "MinimumReplicasUnavailable", "does not have"),
    };
    Statement {
        kind: AVAILABLE,
        status,
        reason: reason.to_owned(),
        message: format!("Deployment {verb} minimum availability."),
    }
}

/// What there is to say about the rollout, if it is anything new.
fn progress(
    world: &World,
    fleet: &Fleet<'_>,
    counts: &DeploymentStatus,
    outcome: &Outcome<Action>,
) -> Option<Statement> {
    let deployment = fleet.deployment;
    let current = condition::get(&deployment.status.conditions, PROGRESSING);
    let reason = current.map_or("", |condition| &condition.reason);
    let name = fleet
        .new
        .map_or_else(|| deployment.set_name(), |set| set.meta.key.name.clone());
    let subject = match fleet.new {
        Some(_) => format!("ReplicaSet {name:?}"),
        None => format!("Deployment {:?}", deployment.meta.key.name),
    };
    let of_set =
        |status, reason, what: &str| progressing(status, reason, format!("{subject} {what}."));
    if let Some(statement) = pause(deployment, reason) {
        return Some(statement);
    }
    let creates = |step: &Step<Action>| matches!(step.action, Action::Create { .. });
    if outcome.plan.steps.iter().any(creates) {
        let failure = |error| format!("Failed to create new replica set {name:?}: {error}");
        return match &outcome.failed {
            None => Some(progressing(
                TRUE,
                CREATED,
                format!("Created new replica set {name:?}"),
            )),
            Some(error) if is_create_failure(error) => {
                Some(progressing(FALSE, NOT_CREATED, failure(error)))
            }
            Some(_) => None,
        };
    }
    let settled = reason == DONE && counts.replicas == counts.updated_replicas;
    if settled || deployment.paused || fleet.is_resized() {
        None
    } else if has_all(deployment, counts) {
        Some(of_set(TRUE, DONE, "has successfully progressed"))
    } else if has_advanced(&deployment.status, counts) {
        Some(of_set(TRUE, UPDATED, "is progressing"))
    } else if current.is_some_and(|current| is_late(deployment, current, world.now)) {
        Some(of_set(FALSE, LATE, "has timed out progressing"))
    } else {
        let found = current.is_none() && fleet.new.is_some();
        found.then(|| progressing(TRUE, FOUND, format!("Found new replica set {name:?}")))
    }
}

/// Returns whether an error of a create is one to tell the user about.
///
/// A name that is taken is a collision, which another name settles; in a namespace that is being deleted nothing needs to
/// be created.
pub(crate) fn is_create_failure(error: &ApiError) -> bool {
    let overtaken = error.reason.retry() == Retry::AfterRefresh;
    let taken = error.reason == Reason::AlreadyExists;
    !(overtaken || taken || error.is_namespace_terminating())
}

/// While a rollout is paused its clock stands still; a rollout that was late already stays so.
fn pause(deployment: &Deployment, reason: &str) -> Option<Statement> {
    match (deployment.paused, reason) {
        (_, LATE) | (true, PAUSED) => None,
        (true, _) => Some(progressing(
            UNKNOWN,
            PAUSED,
            "Deployment is paused".to_owned(),
        )),
        (false, PAUSED) => Some(progressing(
            UNKNOWN,
            RESUMED,
            "Deployment is resumed".to_owned(),
        )),
        (false, _) => None,
    }
}

/// What keeps the sets from having their Pods; what keeps the new one from it, before all others.
fn failure(fleet: &Fleet<'_>) -> Option<Statement> {
    let failures =
        |set: &crate::Set| condition::get(&set.status.conditions, REPLICA_FAILURE).cloned();
    let failure = fleet.all().rev().find_map(failures)?;
    Some(Statement {
        kind: REPLICA_FAILURE,
        status: TRUE,
        reason: failure.reason,
        message: failure.message,
    })
}

fn has_all(deployment: &Deployment, counts: &DeploymentStatus) -> bool {
    [
        counts.updated_replicas,
        counts.replicas,
        counts.available_replicas,
    ] == [deployment.replicas; 3]
}

fn has_advanced(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    let outdated =
        |status: &DeploymentStatus| status.replicas.saturating_sub(status.updated_replicas);
    new.updated_replicas > old.updated_replicas
        || outdated(new) < outdated(old)
        || new.ready_replicas > old.ready_replicas
        || new.available_replicas > old.available_replicas
}

/// A rollout that was complete is not late, whatever becomes of its Pods later.
fn is_late(deployment: &Deployment, current: &DeploymentCondition, now: Timestamp) -> bool {
    let left = time_left(deployment, current, now);
    current.reason == LATE || (current.reason != DONE && left.is_some_and(|left| left.is_zero()))
}

fn time_left(
    deployment: &Deployment,
    current: &DeploymentCondition,
    now: Timestamp,
) -> Option<Duration> {
    let limit = deployment.deadline?;
    let passed = now.duration_since(current.last_update_time.timestamp()?);
    Some(limit.saturating_sub(Duration::try_from(passed).unwrap_or_default()))
}

fn progressing(status: &'static str, reason: &str, message: String) -> Statement {
    Statement {
        kind: PROGRESSING,
        status,
        reason: reason.to_owned(),
        message,
    }
}

/// Writes the statement down, unless it is what the condition says already.
fn note(conditions: &mut Vec<DeploymentCondition>, statement: Statement, now: Timestamp) {
    let current = condition::get(conditions, statement.kind);
    let known = current.is_some_and(|current| {
        current.status == statement.status && current.reason == statement.reason
    });
    if !known {
        replace(conditions, statement, now);
    }
}

fn replace(conditions: &mut Vec<DeploymentCondition>, statement: Statement, now: Timestamp) {
    let current = condition::get(conditions, statement.kind);
    let since = current
        .filter(|current| current.status == statement.status)
        .map(|current| current.last_transition_time);
    conditions.retain(|condition| condition.r#type != statement.kind);
    conditions.push(DeploymentCondition {
        r#type: statement.kind.to_owned(),
        status: statement.status.to_owned(),
        reason: statement.reason,
        message: statement.message,
        last_update_time: now.into(),
        last_transition_time: since.unwrap_or_else(|| now.into()),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks D8.
    #[test]
    fn a_rollout_advances_with_new_pods_and_with_the_end_of_old_ones() {
        let counts = |[replicas, updated, ready, available]: [i32; 4]| DeploymentStatus {
            replicas,
            updated_replicas: updated,
            ready_replicas: ready,
            available_replicas: available,
            ..Default::default()
        };
        let advances = |new| has_advanced(&counts([5, 2, 3, 3]), &counts(new));
        assert!(!advances([5, 2, 3, 3]), "nothing has changed");
        assert!(advances([6, 3, 3, 3]), "one more is new");
        assert!(advances([4, 2, 3, 3]), "one less is old");
        assert!(advances([5, 2, 4, 3]) && advances([5, 2, 3, 4]));
        let backwards = [[6, 2, 3, 3], [5, 2, 2, 3], [5, 2, 3, 2], [4, 1, 3, 3]];
        assert!(!backwards.into_iter().any(advances));
    }
}
