//! The resources that an object of any kind uses, and whether a quota counts it.

use jiff::Timestamp;
use setpoint_codec::{Kind, Object, kind_of};
use setpoint_model::amounts::Amounts;
use setpoint_model::quota;
use setpoint_proto::core::{Event, PersistentVolumeClaim, Pod, ResourceQuotaSpec, Service};
use setpoint_proto::resource::ResourceClaim;

/// Returns whether objects of a kind may be limited by quotas.
pub(super) fn is_counted(kind: &Kind) -> bool {
    kind.namespaced && kind.plural != kind_of::<Event>().plural
}

/// Returns the resources that an object uses at the moment `now`.
pub(super) fn of(object: &dyn Object, now: Timestamp) -> Amounts {
    if let Some(pod) = object.downcast_ref::<Pod>() {
        quota::of_pod(pod, now)
    } else if let Some(service) = object.downcast_ref::<Service>() {
        quota::of_service(service)
    } else if let Some(claim) = object.downcast_ref::<PersistentVolumeClaim>() {
        quota::of_claim(claim)
    } else if let Some(claim) = object.downcast_ref::<ResourceClaim>() {
        quota::of_resource_claim(claim)
    } else {
        quota::of_other(&object.kind().resource())
    }
}

/// Returns whether an object is in all scopes of a quota.
pub(super) fn matches(spec: &ResourceQuotaSpec, object: &dyn Object) -> bool {
    if let Some(pod) = object.downcast_ref::<Pod>() {
        quota::pod_matches(spec, pod)
    } else if let Some(claim) = object.downcast_ref::<PersistentVolumeClaim>() {
        quota::claim_matches(spec, claim)
    } else {
        !quota::has_scopes(spec)
    }
}
