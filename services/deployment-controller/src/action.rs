//! The writes to ReplicaSets, and the steps that several stages of a plan have in common.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;

use setpoint_controller::{Claim, Plan};
use setpoint_model::Target;

use crate::replica_sets::ReplicaSets;
use crate::{ReplicaSetView, annotations};

/// A write to a ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Adopt an orphan.
    Adopt(Target),
    /// Release a set that the selector no longer matches.
    Release(Target),
    /// Create the set of the current template.
    Create {
        /// Derived from the template, so that a retry finds the set of an earlier attempt.
        name: String,
        /// The hash of the template, for the labels of the set and its Pods.
        hash: String,
        /// The desired number of Pods.
        replicas: i32,
        /// The annotations.
        annotations: BTreeMap<String, String>,
    },
    /// Scale a set.
    Scale {
        /// The set.
        set: Target,
        /// The present desired number of Pods.
        from: i32,
        /// The new desired number of Pods.
        to: i32,
        /// The annotations with the Deployment's size.
        annotations: BTreeMap<String, String>,
    },
    /// Update the annotations and `minReadySeconds` of the set of the current template.
    Refresh {
        /// The set.
        set: Target,
        /// The annotations that change.
        annotations: BTreeMap<String, String>,
        /// Seconds for which a Pod must be ready to count as available.
        min_ready_seconds: i32,
    },
    /// Delete an old set that has no Pods.
    Delete(Target),
}

impl Action {
    pub(crate) fn scale(sets: &ReplicaSets<'_>, set: &ReplicaSetView, to: i32) -> Self {
        Self::Scale {
            set: set.target(),
            from: set.replicas,
            to,
            annotations: annotations::size(sets.deployment),
        }
    }

    /// Returns the name of the set that the action writes.
    pub fn set(&self) -> &str {
        match self {
            Self::Create { name, .. } => name,
            Self::Adopt(set)
            | Self::Release(set)
            | Self::Scale { set, .. }
            | Self::Refresh { set, .. }
            | Self::Delete(set) => &set.key.name,
        }
    }
}

impl From<Claim> for Action {
    fn from(claim: Claim) -> Self {
        match claim {
            Claim::Adopt(set) => Self::Adopt(set),
            Claim::Release(set) => Self::Release(set),
        }
    }
}

/// Creates the set of the current template, if it is missing and its name is free.
pub(crate) fn create(sets: &ReplicaSets<'_>, replicas: i32, plan: &mut Plan<Action>) {
    if sets.new.is_some() || sets.collides() {
        return;
    }
    let deployment = sets.deployment;
    let create = Action::Create {
        name: deployment.set_name(),
        hash: deployment.template_hash(),
        replicas,
        annotations: annotations::initial(deployment, sets.revision()),
    };
    plan.step(create, "no ReplicaSet has this template");
}

/// Scales a set, unless it has that size.
pub(crate) fn scale(
    sets: &ReplicaSets<'_>,
    set: &ReplicaSetView,
    to: i32,
    because: &'static str,
    plan: &mut Plan<Action>,
) {
    if set.replicas != to {
        plan.step(Action::scale(sets, set, to), because);
    }
}
