//! Proportional scaling: distributes a change of `spec.replicas` over the sets during a rollout or while it is paused.
#![warn(clippy::arithmetic_side_effects)]

use std::cmp::Reverse;

use setpoint_controller::Plan;

use crate::annotations::{changed, size};
use crate::replica_sets::ReplicaSets;
use crate::{Action, ReplicaSetView, Strategy};

/// Scales the sets to the Deployment's size without advancing the rollout.
pub(crate) fn scale_proportionally(sets: &ReplicaSets<'_>, plan: &mut Plan<Action>) {
    if !(sets.deployment.paused || sets.is_resized()) {
        return;
    }
    if let Some(only) = only_active_or_latest(sets) {
        resize(sets, only, sets.deployment.replicas, plan);
    } else if is_saturated(sets) {
        for set in sets.old.iter().filter(|set| set.replicas > 0) {
            resize(sets, set, 0, plan);
        }
    } else if let Strategy::Rolling { .. } = sets.deployment.strategy {
        for (set, to) in shares(sets) {
            resize(sets, set, to, plan);
        }
    }
}

/// Scales a set or, if it has this size already, updates the annotations with the Deployment's size.
fn resize(sets: &ReplicaSets<'_>, set: &ReplicaSetView, to: i32, plan: &mut Plan<Action>) {
    if set.replicas != to || !changed(size(sets.deployment), set).is_empty() {
        plan.step(Action::scale(sets, set, to), "the Deployment was resized");
    }
}

/// Returns the set with Pods, if there is only one; the newest set if none has Pods.
fn only_active_or_latest<'a>(sets: &ReplicaSets<'a>) -> Option<&'a ReplicaSetView> {
    let mut active = sets.active();
    match (active.next(), active.next()) {
        (None, _) => sets.all().next_back(),
        (only, None) => only,
        _ => None,
    }
}

/// Returns whether the new set has the desired number of Pods, all of them available.
fn is_saturated(sets: &ReplicaSets<'_>) -> bool {
    let desired = sets.deployment.replicas;
    sets.new.is_some_and(|new| {
        new.replicas == desired
            && new.desired() == Some(desired)
            && new.status.available_replicas == desired
    })
}

/// Returns the new size of each active set, in proportion to its present size; the largest takes the remainder.
fn shares<'a>(sets: &ReplicaSets<'a>) -> Vec<(&'a ReplicaSetView, i32)> {
    let allowed = if sets.deployment.replicas > 0 {
        sets.deployment.max_pods()
    } else {
        0
    };
    let mut rest = allowed.saturating_sub(sets.sum(|set| set.replicas));
    let growing = rest > 0;
    let mut active: Vec<_> = sets.active().collect();
    // Of sets of the same size, the newest is first in growing and the oldest is first in shrinking.
    active.sort_by_key(|set| (set.meta.created, &set.meta.key));
    if growing {
        active.reverse();
    }
    active.sort_by_key(|set| Reverse(set.replicas));
    let mut shares: Vec<_> = active
        .into_iter()
        .map(|set| {
            let change = proportional(sets, set);
            let change = if growing {
                change.clamp(0, rest)
            } else {
                change.clamp(rest, 0)
            };
            rest = rest.saturating_sub(change);
            (set, set.replicas.saturating_add(change))
        })
        .collect();
    if let Some((_, largest)) = shares.first_mut() {
        *largest = largest.saturating_add(rest).max(0);
    }
    shares
}

/// Returns the change of the set's size that keeps its proportion of the Deployment.
fn proportional(sets: &ReplicaSets<'_>, set: &ReplicaSetView) -> i32 {
    let deployment = sets.deployment;
    let before = set
        .max()
        .filter(|max| *max > 0)
        .unwrap_or(deployment.status.replicas);
    if deployment.replicas == 0 {
        return set.replicas.saturating_neg();
    }
    // The previous size is unknown: the largest set takes the whole change as the remainder.
    if before == 0 {
        return 0;
    }
    let exact = f64::from(set.replicas) * f64::from(deployment.max_pods()) / f64::from(before);
    (exact.round() as i32).saturating_sub(set.replicas)
}
