//! The conditions of a Deployment, which `kubectl rollout status` reads.
#![warn(clippy::arithmetic_side_effects)]

use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::{Outcome, Step};
use setpoint_model::condition::{self, FALSE, TRUE, UNKNOWN};
use setpoint_proto::apps::{DeploymentCondition, DeploymentStatus};
use setpoint_proto::{ApiError, Reason, Retry};

use crate::replica_sets::ReplicaSets;
use crate::{Action, DeploymentView, ReplicaSetView, World};

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

/// A condition without its times.
struct NewCondition {
    kind: &'static str,
    status: &'static str,
    reason: String,
    message: String,
}

/// Returns whether all Pods have the current template and the desired number of them is available.
pub(crate) fn is_complete(sets: &ReplicaSets<'_>) -> bool {
    has_all_replicas(sets.deployment, &sets.counts())
}

/// Returns the time left until the progress deadline; `None` if the rollout has ended or is late already.
pub(crate) fn deadline(deployment: &DeploymentView, now: Timestamp) -> Option<Duration> {
    let current = condition::get(&deployment.status.conditions, PROGRESSING)?;
    let ended = matches!(current.reason.as_str(), DONE | LATE | PAUSED);
    let left = time_left(deployment, current, now)?;
    (!ended && !left.is_zero()).then_some(left)
}

/// Returns the conditions that belong to these counts.
pub(crate) fn conditions(
    world: &World,
    sets: &ReplicaSets<'_>,
    counts: &DeploymentStatus,
    outcome: &Outcome<Action>,
) -> Vec<DeploymentCondition> {
    let mut conditions = sets.deployment.status.conditions.clone();
    set_condition(
        &mut conditions,
        availability(sets.deployment, counts),
        world.now,
    );
    if sets.deployment.deadline.is_none() {
        conditions.retain(|condition| condition.r#type != PROGRESSING);
    } else if let Some(progress) = progress(world, sets, counts, outcome) {
        // Each step of progress restarts the deadline, even if status and reason stay the same.
        let write = if progress.reason == UPDATED {
            replace_condition
        } else {
            set_condition
        };
        write(&mut conditions, progress, world.now);
    }
    match failure(sets) {
        Some(failure) => set_condition(&mut conditions, failure, world.now),
        None => conditions.retain(|condition| condition.r#type != REPLICA_FAILURE),
    }
    conditions
}

fn availability(deployment: &DeploymentView, counts: &DeploymentStatus) -> NewCondition {
    let enough = counts.available_replicas >= deployment.min_available();
    let (status, reason, verb) = match enough {
        true => (TRUE, "MinimumReplicasAvailable", "has"),
        false => (FALSE, "MinimumReplicasUnavailable", "does not have"),
    };
    NewCondition {
        kind: AVAILABLE,
        status,
        reason: reason.to_owned(),
        message: format!("Deployment {verb} minimum availability."),
    }
}

/// Returns the `Progressing` condition if it changes.
fn progress(
    world: &World,
    sets: &ReplicaSets<'_>,
    counts: &DeploymentStatus,
    outcome: &Outcome<Action>,
) -> Option<NewCondition> {
    let deployment = sets.deployment;
    let current = condition::get(&deployment.status.conditions, PROGRESSING);
    let reason = current.map_or("", |condition| &condition.reason);
    let name = sets
        .new
        .map_or_else(|| deployment.set_name(), |set| set.meta.key.name.clone());
    let subject = match sets.new {
        Some(_) => format!("ReplicaSet {name:?}"),
        None => format!("Deployment {:?}", deployment.meta.key.name),
    };
    let about_subject =
        |status, reason, what: &str| progressing(status, reason, format!("{subject} {what}."));
    if let Some(new) = pause(deployment, reason) {
        return Some(new);
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
    if settled || deployment.paused || sets.is_resized() {
        None
    } else if has_all_replicas(deployment, counts) {
        Some(about_subject(TRUE, DONE, "has successfully progressed"))
    } else if has_advanced(&deployment.status, counts) {
        Some(about_subject(TRUE, UPDATED, "is progressing"))
    } else if current.is_some_and(|current| is_late(deployment, current, world.now)) {
        Some(about_subject(FALSE, LATE, "has timed out progressing"))
    } else {
        let found = current.is_none() && sets.new.is_some();
        found.then(|| progressing(TRUE, FOUND, format!("Found new replica set {name:?}")))
    }
}

/// Returns whether an error of a create is reported to the user.
///
/// Not reported: conflicts, which the next reconcile resolves; a taken name, which the collision count resolves; and
/// a namespace that is being deleted, in which nothing needs to be created.
pub(crate) fn is_create_failure(error: &ApiError) -> bool {
    let overtaken = error.reason.retry() == Retry::AfterRefresh;
    let taken = error.reason == Reason::AlreadyExists;
    !(overtaken || taken || error.is_namespace_terminating())
}

/// Returns the condition of a Deployment that was paused or resumed, unless its rollout had exceeded the deadline.
fn pause(deployment: &DeploymentView, reason: &str) -> Option<NewCondition> {
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

/// Returns the `ReplicaFailure` condition of the newest set that has one, the new set first.
fn failure(sets: &ReplicaSets<'_>) -> Option<NewCondition> {
    let failure =
        |set: &ReplicaSetView| condition::get(&set.status.conditions, REPLICA_FAILURE).cloned();
    let failure = sets.all().rev().find_map(failure)?;
    Some(NewCondition {
        kind: REPLICA_FAILURE,
        status: TRUE,
        reason: failure.reason,
        message: failure.message,
    })
}

fn has_all_replicas(deployment: &DeploymentView, counts: &DeploymentStatus) -> bool {
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

/// A rollout that has completed is never late, even if its Pods become unavailable later.
fn is_late(deployment: &DeploymentView, current: &DeploymentCondition, now: Timestamp) -> bool {
    let left = time_left(deployment, current, now);
    current.reason == LATE || (current.reason != DONE && left.is_some_and(|left| left.is_zero()))
}

fn time_left(
    deployment: &DeploymentView,
    current: &DeploymentCondition,
    now: Timestamp,
) -> Option<Duration> {
    let limit = deployment.deadline?;
    let passed = now.duration_since(current.last_update_time.timestamp()?);
    Some(limit.saturating_sub(Duration::try_from(passed).unwrap_or_default()))
}

fn progressing(status: &'static str, reason: &str, message: String) -> NewCondition {
    NewCondition {
        kind: PROGRESSING,
        status,
        reason: reason.to_owned(),
        message,
    }
}

/// Sets a condition, unless it has the same status and reason.
fn set_condition(conditions: &mut Vec<DeploymentCondition>, new: NewCondition, now: Timestamp) {
    let current = condition::get(conditions, new.kind);
    let known =
        current.is_some_and(|current| current.status == new.status && current.reason == new.reason);
    if !known {
        replace_condition(conditions, new, now);
    }
}

fn replace_condition(conditions: &mut Vec<DeploymentCondition>, new: NewCondition, now: Timestamp) {
    let current = condition::get(conditions, new.kind);
    let since = current
        .filter(|current| current.status == new.status)
        .map(|current| current.last_transition_time);
    conditions.retain(|condition| condition.r#type != new.kind);
    conditions.push(DeploymentCondition {
        r#type: new.kind.to_owned(),
        status: new.status.to_owned(),
        reason: new.reason,
        message: new.message,
        last_update_time: now.into(),
        last_transition_time: since.unwrap_or_else(|| now.into()),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks D8.
    #[test]
    fn progress_is_more_updated_ready_or_available_pods_or_fewer_old_ones() {
        let counts = |[replicas, updated, ready, available]: [i32; 4]| DeploymentStatus {
            replicas,
            updated_replicas: updated,
            ready_replicas: ready,
            available_replicas: available,
            ..Default::default()
        };
        let advances = |new| has_advanced(&counts([5, 2, 3, 3]), &counts(new));
        assert!(!advances([5, 2, 3, 3]), "nothing has changed");
        assert!(advances([6, 3, 3, 3]), "one more updated Pod");
        assert!(advances([4, 2, 3, 3]), "one old Pod less");
        assert!(advances([5, 2, 4, 3]) && advances([5, 2, 3, 4]));
        let backwards = [[6, 2, 3, 3], [5, 2, 2, 3], [5, 2, 3, 2], [4, 1, 3, 3]];
        assert!(!backwards.into_iter().any(advances));
    }
}
