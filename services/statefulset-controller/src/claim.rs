//! The claims of Pods, and their owners: what a claim's owner references must be for the retention policy of the set.
//!
//! | deleted with the set | on scale-down | owner, ordinal in use | owner, ordinal condemned |
//! |----------------------|---------------|-----------------------|--------------------------|
//! | no                   | no            | none                  | none                     |
//! | yes                  | no            | set                   | set                      |
//! | no                   | yes           | none                  | Pod                      |
//! | yes                  | yes           | set                   | Pod                      |
#![warn(clippy::arithmetic_side_effects)]

use std::mem;

use setpoint_controller::{View, reference};
use setpoint_model::Meta;
use setpoint_proto::Resource;
use setpoint_proto::apps::StatefulSet;
use setpoint_proto::core::{PersistentVolumeClaim, Pod};
use setpoint_proto::meta::OwnerReference;
use setpoint_workload::PodView;

use crate::StatefulSetView;

/// The fields of a PersistentVolumeClaim that the controller reads.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// All owners.
    pub owners: Vec<OwnerReference>,
}

impl View for ClaimView {
    type Object = PersistentVolumeClaim;

    fn of(mut claim: PersistentVolumeClaim) -> Self {
        claim.metadata.labels.clear();
        claim.metadata.annotations.clear();
        Self {
            meta: Meta::of(&claim.metadata),
            owners: mem::take(&mut claim.metadata.owner_references),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// The set and the Pod that may own a claim.
pub(crate) struct Owners<'a> {
    set: &'a StatefulSetView,
    ordinal: i64,
    pod: Option<&'a PodView>,
}

impl<'a> Owners<'a> {
    /// `pod` is `None` if there is no Pod with this ordinal.
    pub fn new(set: &'a StatefulSetView, ordinal: i64, pod: Option<&'a PodView>) -> Self {
        Self { set, ordinal, pod }
    }

    /// Returns the references that the claim must have; `None` if it needs no change.
    pub fn changed(&self, claim: &ClaimView) -> Option<Vec<OwnerReference>> {
        if claim.owners.iter().any(|owner| self.is_stale(owner)) {
            // Left to the garbage collector: the claim belongs to an earlier set or Pod of the name.
            return None;
        }
        let mut owners = claim.owners.clone();
        owners.retain(|owner| !self.names_set(owner) && !self.names_pod(owner));
        if !self.conflicts(claim) {
            owners.extend(self.wanted());
        }
        let is_ours = |owner: &&OwnerReference| self.names_set(owner) || self.names_pod(owner);
        let key = |owner: &OwnerReference| (owner.uid.clone(), owner.controller == Some(true));
        let before = claim.owners.iter().filter(is_ours).map(key);
        let after = owners.iter().filter(is_ours).map(key);
        (!before.eq(after)).then_some(owners)
    }

    /// Returns whether another controller owns the claim, which the retention policy then does not apply to.
    pub fn conflicts(&self, claim: &ClaimView) -> bool {
        let Self { set, .. } = self;
        let is_other = |owner: &OwnerReference| {
            let ours = self.names_set(owner) || self.names_pod(owner);
            self.is_stale(owner) || !ours && owner.controller == Some(true)
        };
        let retained = !set.retention.delete_with_set && !set.retention.delete_on_scale_down;
        !retained && claim.owners.iter().any(is_other)
    }

    /// Returns whether a claim is about to be deleted with an earlier Pod of the ordinal.
    pub fn is_of_earlier_pod(&self, claim: &ClaimView) -> bool {
        let mut owners = claim.owners.iter();
        self.set.retention.delete_on_scale_down
            && owners.any(|owner| self.names_pod(owner) && self.is_stale(owner))
    }

    /// Returns the owner of a claim that no one else controls.
    pub fn wanted(&self) -> Option<OwnerReference> {
        let Self { set, pod, .. } = self;
        let condemned = !set.ordinals.contains(&self.ordinal);
        if condemned && set.retention.delete_on_scale_down {
            return pod.map(|pod| reference::<Pod>(&pod.meta));
        }
        let with_set = set.retention.delete_with_set;
        with_set.then(|| reference::<StatefulSet>(&set.meta))
    }

    fn names_set(&self, owner: &OwnerReference) -> bool {
        is_of_kind::<StatefulSet>(owner) && owner.name == self.set.meta.key.name
    }

    fn names_pod(&self, owner: &OwnerReference) -> bool {
        is_of_kind::<Pod>(owner) && owner.name == self.set.pod_name(self.ordinal)
    }

    /// Returns whether a reference has the name of the set or the Pod, and another uid.
    fn is_stale(&self, owner: &OwnerReference) -> bool {
        let pod = self.pod.map(|pod| &pod.meta.uid);
        self.names_set(owner) && owner.uid != self.set.meta.uid
            || self.names_pod(owner) && Some(&owner.uid) != pod
    }
}

fn is_of_kind<T: Resource>(owner: &OwnerReference) -> bool {
    owner.api_version == T::API_VERSION && owner.kind == T::KIND
}
