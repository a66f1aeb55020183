//! The `RollingUpdate` strategy.
//!
//! There are never more than `max_pods` Pods, and a rollout never reduces the available ones below `min_available`.
//! Both bounds are checked against the worse of spec and status of each set, and only while the status of every set
//! reflects its spec. They hold in whatever order the ReplicaSet controller scales the sets.
#![warn(clippy::arithmetic_side_effects)]

use std::cmp::Ordering;

use setpoint_controller::Plan;

use crate::action::{create, scale};
use crate::replica_sets::ReplicaSets;
use crate::{Action, ReplicaSetView};

/// Scales the new set up; if there is no room for that, scales old sets down.
pub(crate) fn advance(sets: &ReplicaSets<'_>, plan: &mut Plan<Action>) {
    if !sets.are_observed() {
        return;
    }
    let Some(new) = sets.new else {
        return create(sets, growth(sets, 0), plan);
    };
    let desired = sets.deployment.replicas;
    match new.replicas.cmp(&desired) {
        Ordering::Less => {
            let to = new.replicas.saturating_add(growth(sets, new.replicas));
            scale(sets, new, to, "there is room for more", plan);
        }
        Ordering::Greater => scale(sets, new, desired, "more Pods than replicas", plan),
        Ordering::Equal => {}
    }
    if plan.is_empty() {
        scale_down(sets, new, plan);
    }
}

/// Returns the number of Pods by which a set of this size may grow.
fn growth(sets: &ReplicaSets<'_>, size: i32) -> i32 {
    let deployment = sets.deployment;
    let room = deployment
        .max_pods()
        .saturating_sub(sets.sum(ReplicaSetView::pods));
    let missing = deployment.replicas.saturating_sub(size);
    room.min(missing).max(0)
}

/// Scales old sets down: first by their unavailable Pods, then by available ones as long as `min_available` are left.
///
/// New Pods that are not available count as missing, so while they fail, old Pods are kept, even unavailable ones.
fn scale_down(sets: &ReplicaSets<'_>, new: &ReplicaSetView, plan: &mut Plan<Action>) {
    let unavailable = new.replicas.saturating_sub(new.available());
    let spare = sets
        .sum(|set| set.replicas)
        .saturating_sub(sets.deployment.min_available())
        .saturating_sub(unavailable);
    let mut spare = spare.max(0);
    let mut take = |size: &mut i32, limit: i32| {
        let taken = limit.clamp(0, spare);
        (*size, spare) = (size.saturating_sub(taken), spare.saturating_sub(taken));
    };
    let mut sizes: Vec<_> = sets.old.iter().map(|set| set.replicas).collect();
    for (size, set) in sizes.iter_mut().zip(&sets.old) {
        let unavailable_old = size.saturating_sub(set.available());
        take(size, unavailable_old);
    }
    for size in &mut sizes {
        let all = *size;
        take(size, all);
    }
    for (set, to) in sets.old.iter().zip(sizes) {
        scale(sets, set, to, "enough Pods are available without it", plan);
    }
}
