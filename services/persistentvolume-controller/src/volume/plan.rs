//! Plan: protects the volume, gives up a binding that failed, and reclaims the volume when its claim is gone.

use std::sync::Arc;

use setpoint_controller::Plan;
use setpoint_model::Key;
use setpoint_model::names::validate_label_value;
use setpoint_model::volume::{LOCAL_PATH, NODE, Volume};

use super::VolumeView;

/// Everything that the decision about one volume depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The volume.
    pub volume: Arc<VolumeView>,
    /// The claim that it is reserved for.
    pub claim: ClaimState,
    /// For a volume whose folder the agent of a node removes: the name of the node, if it does not exist.
    pub missing_node: Option<String>,
}

/// The claim that a volume is reserved for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimState {
    /// It is reserved for none.
    None,
    /// It is reserved for one by name only.
    Named,
    /// The claim with this uid does not exist.
    Gone,
    /// The claim names no volume yet.
    Unbound,
    /// The claim names this volume.
    Bound,
    /// The claim names another volume.
    BoundElsewhere,
}

/// A write of the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Add the label by which the agent of this node finds it.
    Label {
        /// The node that has its folder.
        node: String,
    },
    /// Add the finalizer that keeps it while it is bound.
    Protect,
    /// Remove that finalizer.
    Unprotect,
    /// Remove the reservation for a claim; only its uid, if a user made it.
    Unbind,
    /// Delete the volume. Its claim must still be gone.
    Delete {
        /// The claim that it was bound to.
        claim: Key,
    },
    /// Remove the finalizer with which the agent of this node keeps it until its folder is removed. The node must still
    /// be gone.
    Abandon {
        /// The node that does not exist.
        node: String,
    },
}

/// The change of its binding that a volume needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It keeps its binding, or waits for one.
    Stays,
    /// It has to give up a claim that is bound to another volume.
    Unbinds,
    /// It is released, and the policy decides.
    Reclaimed,
}

impl World {
    pub(crate) fn fate(&self) -> Fate {
        let volume = &self.volume.volume;
        let unused = volume.provisioner().is_some() && volume.reclaim_policy == "Delete";
        match self.claim {
            ClaimState::Gone => Fate::Reclaimed,
            // It was provisioned for a claim that has found another volume.
            ClaimState::BoundElsewhere if unused => Fate::Reclaimed,
            ClaimState::BoundElsewhere => Fate::Unbinds,
            _ => Fate::Stays,
        }
    }

    /// Returns whether this controller deletes the volume when it is released.
    fn is_ours(&self) -> bool {
        let volume = &self.volume.volume;
        volume.reclaim_policy == "Delete" && volume.provisioner() == Some(LOCAL_PATH)
    }
}

/// Returns the node that has the folder of a volume, if the volume has no label with it: one that an earlier version
/// has made, or whose label somebody has removed. The name of a node that is too long for a label is in none.
fn unlabelled(volume: &Volume) -> Option<&str> {
    let node = volume.meta.annotation(NODE)?;
    let is_labelled = volume
        .meta
        .labels
        .get(NODE)
        .is_some_and(|label| label == node);
    let fits = validate_label_value(node).is_empty();
    (volume.has_finalizer(LOCAL_PATH) && !is_labelled && fits).then_some(node)
}

/// Plans for one volume. Writes of the volume itself are planned one at a time.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    let volume = &world.volume.volume;
    let (deleting, phase) = (volume.meta.deleting, &*volume.phase);
    let fate = world.fate();
    if let Some(node) = unlabelled(volume) {
        let label = Action::Label { node: node.into() };
        plan.step(label, "its node finds its volumes by a label");
    } else if !deleting && !volume.is_protected() {
        plan.step(Action::Protect, "claims may be bound to it");
    } else if fate == Fate::Unbinds {
        plan.step(Action::Unbind, "its claim is bound to another volume");
    } else if deleting && volume.is_protected() {
        // What the status says is known to the gateway.
        let idle = phase != "Bound" && !matches!(world.claim, ClaimState::Bound);
        if idle {
            let because = "it is being deleted, and no claim is bound to it";
            plan.step(Action::Unprotect, because);
        }
    } else if let (true, Some(node)) = (deleting, &world.missing_node) {
        let abandon = Action::Abandon { node: node.clone() };
        plan.step(abandon, "its data went with its node");
    } else if let (Fate::Reclaimed, "Released" | "Failed", true, false, Some(claim)) =
        (fate, phase, world.is_ours(), deleting, &volume.claim)
    {
        let delete = Action::Delete {
            claim: claim.key.clone(),
        };
        plan.step(delete, "its claim is gone, and its policy is Delete");
    }
    plan
}
