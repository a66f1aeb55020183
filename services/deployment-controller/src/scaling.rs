//! A change of size in the middle of a rollout, or while it is paused: shared out, so that no template wins by it.
#![warn(clippy::arithmetic_side_effects)]

use std::cmp::Reverse;

use setpoint_controller::Plan;

use crate::annotations::{news, size};
use crate::fleet::Fleet;
use crate::{Action, Set, Strategy};

/// Brings the sets to the Deployment's size without moving the rollout.
pub(crate) fn share_out(fleet: &Fleet<'_>, plan: &mut Plan<Action>) {
    if !(fleet.deployment.paused || fleet.is_resized()) {
        return;
    }
    if let Some(only) = only_active_or_latest(fleet) {
        resize(fleet, only, fleet.deployment.replicas, plan);
    } else if is_saturated(fleet) {
        for set in fleet.old.iter().filter(|set| set.replicas > 0) {
            resize(fleet, set, 0, plan);
        }
    } else if let Strategy::Rolling { .. } = fleet.deployment.strategy {
        for (set, to) in shares(fleet) {
            resize(fleet, set, to, plan);
        }
    }
}

/// The size, and for what size of the Deployment: a set that happens to have the right size must be told, too.
fn resize(fleet: &Fleet<'_>, set: &Set, to: i32, plan: &mut Plan<Action>) {
    let annotations = size(fleet.deployment);
    if set.replicas != to || !news(annotations.clone(), set).is_empty() {
        let scale = Action::Scale {
            set: set.target(),
            from: set.replicas,
            to,
            annotations,
        };
        plan.step(scale, "the Deployment was resized");
    }
}

/// The one set with Pods; with none, the set to which Pods will come back.
fn only_active_or_latest<'a>(fleet: &Fleet<'a>) -> Option<&'a Set> {
    let mut active = fleet.active();
    match (active.next(), active.next()) {
        (None, _) => fleet.all().next_back(),
        (only, None) => only,
        _ => None,
    }
}

/// Has the new set all the Pods, all of them available?
fn is_saturated(fleet: &Fleet<'_>) -> bool {
    let wanted = fleet.deployment.replicas;
    fleet.new.is_some_and(|new| {
        new.replicas == wanted
            && new.desired() == Some(wanted)
            && new.status.available_replicas == wanted
    })
}

/// Each set keeps its proportion; the largest takes the remainder.
fn shares<'a>(fleet: &Fleet<'a>) -> Vec<(&'a Set, i32)> {
    let allowed = if fleet.deployment.replicas > 0 {
        fleet.deployment.max_pods()
    } else {
        0
    };
    let mut rest = allowed.saturating_sub(fleet.sum(|set| set.replicas));
    let growing = rest > 0;
    let mut sets: Vec<_> = fleet.active().collect();
    // Among equals a growing Deployment favours the newest, a shrinking one spares it.
    sets.sort_by_key(|set| (set.meta.created, &set.meta.key));
    if growing {
        sets.reverse();
    }
    sets.sort_by_key(|set| Reverse(set.replicas));
    let mut shares: Vec<_> = sets
        .into_iter()
        .map(|set| {
            let change = proportional(fleet, set);
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

/// By how much the set would change if it kept its share of the Deployment.
fn proportional(fleet: &Fleet<'_>, set: &Set) -> i32 {
    let deployment = fleet.deployment;
    let before = set
        .max()
        .filter(|max| *max > 0)
        .unwrap_or(deployment.status.replicas);
    if deployment.replicas == 0 {
        return set.replicas.saturating_neg();
    }
    // Without a size to compare with, the remainder decides alone.
    if before == 0 {
        return 0;
    }
    let exact = f64::from(set.replicas) * f64::from(deployment.max_pods()) / f64::from(before);
    (exact.round() as i32).saturating_sub(set.replicas)
}
