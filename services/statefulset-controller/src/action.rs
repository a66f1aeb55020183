//! The writes of the controller, as data.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::ObjectRef;
use setpoint_model::owner::Reference;
use setpoint_model::{Key, Target};
use setpoint_proto::Resource as _;
use setpoint_proto::apps::ControllerRevision;
use setpoint_proto::core::{PersistentVolumeClaim, Pod};
use setpoint_workload::history::Write;

use crate::StatefulSetView;

/// A write to a Pod, a claim or a revision.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Adopt an orphaned Pod.
    Adopt(Target),
    /// Release a Pod that the set no longer selects.
    Release(Target),
    /// Write a revision.
    Revision(Write),
    /// Create a claim.
    CreateClaim {
        /// Its name.
        claim: String,
        /// The ordinal of its Pod.
        ordinal: i64,
    },
    /// Change the owners of a claim.
    OwnClaim {
        /// The claim.
        claim: Target,
        /// The ordinal of its Pod.
        ordinal: i64,
        /// All owners that it gets.
        owners: Vec<Reference>,
    },
    /// Report that a Pod cannot be created before the deletion of a claim completes. This writes nothing, and fails.
    AwaitClaim {
        /// The name of the claim.
        claim: String,
        /// The ordinal of the Pod.
        ordinal: i64,
    },
    /// Create a Pod.
    Create {
        /// Its name.
        name: String,
        /// Its ordinal.
        ordinal: i64,
        /// The name of the revision from whose template it is made.
        revision: String,
    },
    /// Restore the labels and volumes of a Pod.
    Repair {
        /// The Pod.
        pod: Target,
        /// Its ordinal.
        ordinal: i64,
    },
    /// Delete a Pod.
    Delete(Target),
}

impl Action {
    /// Returns the object that the action writes.
    pub(crate) fn object(&self, set: &StatefulSetView) -> ObjectRef {
        let (resource, name) = match self {
            Self::Revision(write) => (ControllerRevision::RESOURCE, write.name()),
            Self::CreateClaim { claim, .. } | Self::AwaitClaim { claim, .. } => {
                (PersistentVolumeClaim::RESOURCE, &**claim)
            }
            Self::OwnClaim { claim, .. } => (PersistentVolumeClaim::RESOURCE, &*claim.key.name),
            Self::Create { name, .. } => (Pod::RESOURCE, &**name),
            Self::Adopt(pod)
            | Self::Release(pod)
            | Self::Repair { pod, .. }
            | Self::Delete(pod) => (Pod::RESOURCE, &*pod.key.name),
        };
        Key::new(&set.meta.key.namespace, name).in_resource(resource)
    }

    /// Returns the name of the Pod that the action is for; empty for revisions.
    pub(crate) fn pod(&self, set: &StatefulSetView) -> String {
        match self {
            Self::CreateClaim { ordinal, .. }
            | Self::OwnClaim { ordinal, .. }
            | Self::AwaitClaim { ordinal, .. }
            | Self::Create { ordinal, .. }
            | Self::Repair { ordinal, .. } => set.pod_name(*ordinal),
            Self::Adopt(pod) | Self::Release(pod) | Self::Delete(pod) => pod.key.name.clone(),
            _ => String::new(),
        }
    }
}
