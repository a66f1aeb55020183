//! A view of a PersistentVolumeClaim.

use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_model::volume::{CLAIM_PROTECTION, Claim};
use setpoint_proto::core::{PersistentVolumeClaim, PersistentVolumeClaimStatus};
use setpoint_proto::meta::Quantity;

/// The tag of claims that are not bound.
pub(super) const UNBOUND: &str = "unbound";

/// The fields of a claim that the controllers read.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimView {
    /// The fields that decide on its binding.
    pub claim: Claim,
    /// All finalizers.
    pub finalizers: Vec<String>,
    /// The requested size, as the user wrote it.
    pub size: Quantity,
    /// The status.
    pub status: PersistentVolumeClaimStatus,
}

impl View for ClaimView {
    type Object = PersistentVolumeClaim;

    fn of(mut object: PersistentVolumeClaim) -> Self {
        let requests = &mut object.spec.resources.requests;
        let size = requests.get("storage").cloned().unwrap_or_default();
        Self {
            claim: Claim::of(&object),
            finalizers: object.metadata.finalizers,
            size,
            status: object.status,
        }
    }

    fn meta(&self) -> &Meta {
        &self.claim.meta
    }

    fn tag(&self) -> Option<&str> {
        (!self.claim.is_bound()).then_some(UNBOUND)
    }
}

impl ClaimView {
    /// Returns whether it cannot vanish while Pods use it.
    pub fn is_protected(&self) -> bool {
        let mut finalizers = self.finalizers.iter();
        finalizers.any(|own| own == CLAIM_PROTECTION)
    }
}
