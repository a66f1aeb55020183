//! Rolling update: a few Pods at a time.
//!
//! At every moment there are at most `max_pods`, and at least `min_available` of those that were available stay so.
//! Both are judged by the worse of what a set was told and what it reported, and only when every set has reported on
//! what it was last told: then no order in which the sets follow can break them.
#![warn(clippy::arithmetic_side_effects)]

use std::cmp::Ordering;

use setpoint_controller::Plan;

use crate::fleet::Fleet;
use crate::plan::{create, scale};
use crate::{Action, Set};

/// Up first, since more Pods make room to take others down.
pub(crate) fn advance(fleet: &Fleet<'_>, plan: &mut Plan<Action>) {
    if !fleet.has_followed() {
        return;
    }
    let Some(new) = fleet.new else {
        return create(fleet, growth(fleet, 0), plan);
    };
    let wanted = fleet.deployment.replicas;
    match new.replicas.cmp(&wanted) {
        Ordering::Less => {
            let to = new.replicas.saturating_add(growth(fleet, new.replicas));
            scale(fleet, new, to, "there is room for more", plan);
        }
        Ordering::Greater => scale(fleet, new, wanted, "more Pods than replicas", plan),
        Ordering::Equal => {}
    }
    if plan.is_empty() {
        take_down(fleet, new, plan);
    }
}

/// How many Pods a set of this size may get in addition.
fn growth(fleet: &Fleet<'_>, size: i32) -> i32 {
    let deployment = fleet.deployment;
    let room = deployment.max_pods().saturating_sub(fleet.sum(Set::pods));
    let missing = deployment.replicas.saturating_sub(size);
    room.min(missing).max(0)
}

/// First old Pods that are not available, which nobody will miss; then others, as far as new ones stand in for them.
///
/// New Pods that are still coming are not counted on: while they fail to come, old ones stay, even failing ones.
fn take_down(fleet: &Fleet<'_>, new: &Set, plan: &mut Plan<Action>) {
    let still_coming = new.replicas.saturating_sub(new.available());
    let spare = fleet
        .sum(|set| set.replicas)
        .saturating_sub(fleet.deployment.min_available())
        .saturating_sub(still_coming);
    let mut spare = spare.max(0);
    let mut take = |size: &mut i32, most: i32| {
        let taken = most.clamp(0, spare);
        (*size, spare) = (size.saturating_sub(taken), spare.saturating_sub(taken));
    };
    let mut sizes: Vec<_> = fleet.old.iter().map(|set| set.replicas).collect();
    for (size, set) in sizes.iter_mut().zip(&fleet.old) {
        let useless = size.saturating_sub(set.available());
        take(size, useless);
    }
    for size in &mut sizes {
        let all = *size;
        take(size, all);
    }
    for (set, to) in fleet.old.iter().zip(sizes) {
        scale(fleet, set, to, "enough Pods are available without it", plan);
    }
}
