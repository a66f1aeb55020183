//! Plan: what becomes of one object because of its owners, and of its dependants because of it.
//!
//! ```text
//!  its owners                    the object
//!  ────────────────────────────  ──────────────────────────────────────────────────────────────────
//!  one is unresolvable           unchanged
//!  one is solid                  kept; its references to dangling and waiting owners are removed
//!  none is solid, one is waiting deleted in the foreground, if it has dependants itself
//!  all are dangling              deleted with the policy that its finalizers imply
//!
//!  being deleted, with           the finalizer is removed
//!  ────────────────────────────  ──────────────────────────────────────────────────────────────────
//!  orphan                        when no object refers to it any more
//!  foregroundDeletion            when no object blocks its deletion any more
//! ```

use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::Plan;
use setpoint_model::Meta;
use setpoint_model::owner::Reference;
use setpoint_proto::meta::OwnerReference;

use crate::Standing;
use crate::item::{FOREGROUND, Item, ORPHAN, Owner, OwnerState, is_blocking};

/// The largest number of dependants that one plan orphans.
pub const BURST: usize = 500;

/// The delay before the dependants are read again, after some of them were orphaned.
const SOON: Duration = Duration::from_millis(20);
/// The delay after a read that failed: thousands of objects may wait for a gateway.
const RETRY: Duration = Duration::from_secs(5);
/// The delay before the kind of an owner that is not served is looked up again.
const LOOK_UP: Duration = Duration::from_secs(5 * 60);

/// Everything that the decision about one object depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The metadata of the object.
    pub meta: Meta,
    /// Resource and kind of the object.
    pub kind: (String, String),
    /// The object as the gateway has it.
    pub live: Live,
    /// Its place in the graph.
    pub standing: Standing,
    /// The references to owners in another namespace, unless they were reported.
    pub foreign: Vec<OwnerReference>,
}

/// An object as the gateway has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Live {
    /// It could not be read.
    #[default]
    Unread,
    /// It is gone, or its name is that of another object.
    Gone,
    /// It exists.
    Present {
        /// The object.
        item: Arc<Item>,
        /// Its owners, in the order of its references.
        owners: Vec<Owner>,
        /// Its dependants, if they matter: it has to be held for them, and the graph has none that blocks it.
        dependants: Option<Vec<Item>>,
    },
}

/// A write of an object, which must be the version that was read, or an Event about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Delete the object with this policy.
    Delete(Arc<Item>, &'static str),
    /// Remove the references to owners with these uids.
    RemoveOwners(Arc<Item>, Vec<String>),
    /// Let the references of the object block no owner.
    Unblock(Arc<Item>),
    /// Remove a finalizer.
    RemoveFinalizer(Arc<Item>, &'static str),
    /// Report a reference to an owner in another namespace.
    Report(Arc<Item>, Reference),
}

impl Action {
    /// Returns the object that it writes or reports.
    pub const fn item(&self) -> &Arc<Item> {
        match self {
            Self::Delete(item, _)
            | Self::RemoveOwners(item, _)
            | Self::Unblock(item)
            | Self::RemoveFinalizer(item, _)
            | Self::Report(item, _) => item,
        }
    }
}

/// Plans for one object.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    let (item, owners, dependants) = match &world.live {
        Live::Gone => return plan,
        Live::Unread => {
            plan.look_again(RETRY);
            return plan;
        }
        Live::Present {
            item,
            owners,
            dependants,
        } => (item, owners, dependants),
    };
    for reference in &world.foreign {
        let report = Action::Report(item.clone(), Reference(reference.clone()));
        plan.step(report, "the reference names an owner in another namespace");
    }
    match item.deleting {
        false => judge(item, owners, world.standing, &mut plan),
        true => finish(item, dependants.as_deref(), world.standing, &mut plan),
    }
    plan
}

/// Plans for an object that is not being deleted.
fn judge(item: &Arc<Item>, owners: &[Owner], standing: Standing, plan: &mut Plan<Action>) {
    let are = |state| move |owner: &&Owner| owner.state == state;
    let count = |state| owners.iter().filter(are(state)).count();
    if count(OwnerState::UnknownKind) > 0 {
        return plan.look_again(LOOK_UP);
    }
    let (dangling, waiting) = (count(OwnerState::Dangling), count(OwnerState::Waiting));
    if count(OwnerState::OutOfScope) > 0 || dangling + waiting == 0 {
        return;
    }
    if count(OwnerState::Solid) > 0 {
        let obsolete = owners
            .iter()
            .filter(|owner| owner.state != OwnerState::Solid);
        let obsolete = obsolete.map(|owner| owner.uid.clone()).collect();
        let because = "another owner exists, and these are gone or wait for their dependants";
        return plan.step(Action::RemoveOwners(item.clone(), obsolete), because);
    }
    let because = match waiting {
        0 => "its owners are gone",
        _ => "its owner waits for the deletion of its dependants",
    };
    let policy = policy(item, waiting > 0 && standing.has_dependants);
    plan.step(Action::Delete(item.clone(), policy), because);
}

/// Returns the policy of a deletion.
fn policy(item: &Item, waits_for_dependants: bool) -> &'static str {
    if waits_for_dependants {
        return "Foreground";
    }
    if item.has_finalizer(ORPHAN) {
        return "Orphan";
    }
    match item.has_finalizer(FOREGROUND) {
        true => "Foreground",
        false => "Background",
    }
}

/// Plans for an object that is being deleted.
fn finish(
    item: &Arc<Item>,
    dependants: Option<&[Item]>,
    standing: Standing,
    plan: &mut Plan<Action>,
) {
    if item.has_finalizer(ORPHAN) {
        return orphan(item, dependants.unwrap_or_default(), plan);
    }
    if !item.has_finalizer(FOREGROUND) {
        return;
    }
    // Upstream assumes a cycle if a dependant waits too, before it deletes the object between. The graph has the cycle
    // itself, also one whose objects were all deleted in the foreground by users.
    if standing.in_cycle && item.owners.iter().any(is_blocking) {
        let because = "objects that wait for each other form a cycle";
        plan.step(Action::Unblock(item.clone()), because);
    }
    let Some(dependants) = dependants else { return };
    if !dependants.iter().any(|one| one.blocks(&item.uid)) {
        let because = "no object blocks its deletion any more";
        plan.step(Action::RemoveFinalizer(item.clone(), FOREGROUND), because);
    }
}

/// Plans for an object whose deletion waits until its dependants are orphaned.
fn orphan(item: &Arc<Item>, dependants: &[Item], plan: &mut Plan<Action>) {
    for dependant in dependants.iter().take(BURST) {
        let uids = vec![item.uid.clone()];
        plan.step(
            Action::RemoveOwners(Arc::new(dependant.clone()), uids),
            "its owner is deleted without its dependants",
        );
    }
    match plan.is_empty() {
        true => plan.step(
            Action::RemoveFinalizer(item.clone(), ORPHAN),
            "no object refers to it any more",
        ),
        false => plan.look_again(SOON),
    }
}
