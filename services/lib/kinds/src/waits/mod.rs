//! The reasons for which objects wait: what `StoredKind::waits` derives from a spec, a status and records of
//! reconciles.

mod rollout;

use setpoint_model::pod;
use setpoint_proto::core::Pod;
use setpoint_proto::setpoint::{ObjectRef, Observer, Reconcile, Wait};

pub(super) use rollout::{Rollout, failures};

/// The records that the waits of an object are derived from, besides the object.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    /// The object.
    pub subject: &'a ObjectRef,
    /// The Pods that it controls and that are not settled.
    pub pods: &'a [(ObjectRef, Pod)],
    /// The replicas that announced themselves, with their last reconciles of the object and its Pods.
    pub observers: &'a [Observer],
    /// The time in nanoseconds since 1970.
    pub now_ns: i64,
}

/// Returns a wait without a time.
pub fn wait(reason: &str, message: impl Into<String>) -> Wait {
    Wait {
        reason: reason.to_owned(),
        message: message.into(),
        ..Wait::default()
    }
}

/// Returns the wait for a controller that has not observed the newest generation.
pub(super) fn not_observed(written: i64, seen: i64) -> Wait {
    let message = format!("generation {written} was not acted upon yet; {seen} was");
    wait("NotObserved", message)
}

/// Returns the newest reconcile of an object by a service.
pub fn newest<'a>(
    observers: &'a [Observer],
    service: &str,
    subject: &ObjectRef,
) -> Option<&'a Reconcile> {
    let observers = observers.iter().filter(|one| one.service == service);
    let reconciles = observers.flat_map(|one| &one.reconciles);
    let own =
        reconciles.filter(|one| one.touched.is_none() && one.subject.as_ref() == Some(subject));
    own.max_by_key(|one| one.last_ns)
}

/// Returns whether a Pod has nothing to wait for: it is ready, or it succeeded.
pub fn is_settled(pod: &Pod) -> bool {
    pod::is_ready(pod) || pod.status.phase == "Succeeded"
}
