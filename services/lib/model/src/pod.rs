//! Containers, ports and the status of Pods.

#![warn(clippy::arithmetic_side_effects)]

use std::time::Duration;

use jiff::Timestamp;
use setpoint_proto::core::{Container, ContainerPort, Pod, PodCondition, PodSpec, PodStatus};

use crate::condition;

/// The type of the condition of a Pod that is about to be deleted because of a disruption (KEP-3329).
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// Sets the condition of a Pod that is about to be deleted because of a disruption. Returns whether the Pod did not
/// have it.
pub fn mark_disrupted(pod: &mut Pod, reason: &str, message: &str, now: Timestamp) -> bool {
    let target = PodCondition {
        r#type: DISRUPTION_TARGET.to_owned(),
        status: condition::TRUE.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: now.into(),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    };
    condition::set(&mut pod.status.conditions, target)
}

/// Returns whether an init container is a sidecar: started in order with the init containers, and kept running beside
/// the main ones (KEP-753).
pub fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// Returns the containers that run at the same time: the main ones and the sidecars.
pub fn running_containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    let sidecars = spec.init_containers.iter();
    let sidecars = sidecars.filter(|container| is_sidecar(container));
    spec.containers.iter().chain(sidecars)
}

/// Returns the ports with names, which Services and NetworkPolicies may refer to.
pub fn named_ports(spec: &PodSpec) -> impl Iterator<Item = &ContainerPort> {
    let ports = running_containers(spec).flat_map(|container| &container.ports);
    ports.filter(|port| !port.name.is_empty())
}

/// Returns the addresses of a Pod; those of a status without a list are its single one.
pub fn ips(status: &PodStatus) -> impl Iterator<Item = &str> {
    let all = status.pod_ips.iter().map(|one| one.ip.as_str());
    let single = Some(status.pod_ip.as_str()).filter(|_| status.pod_ips.is_empty());
    all.chain(single).filter(|ip| !ip.is_empty())
}

/// Returns whether the Pod has succeeded or failed, which is final.
pub fn is_terminal(pod: &Pod) -> bool {
    matches!(pod.status.phase.as_str(), "Succeeded" | "Failed")
}

/// Returns whether the Pod is not terminal and is not being deleted.
pub fn is_active(pod: &Pod) -> bool {
    !is_terminal(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// Returns whether the Pod is ready.
pub fn is_ready(pod: &Pod) -> bool {
    condition::is_true(&pod.status.conditions, "Ready")
}

/// Returns since when the Pod is ready, `None` if it is not; `Timestamp::MIN` if its condition has no time.
pub fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition::get(&pod.status.conditions, "Ready");
    ready
        .filter(|ready| ready.status == condition::TRUE)
        .map(|ready| {
            ready
                .last_transition_time
                .timestamp()
                .unwrap_or(Timestamp::MIN)
        })
}

/// Returns the time until a Pod that is ready since `ready_since` is available: zero if it is, `None` if it is not
/// ready.
pub fn available_in(
    ready_since: Option<Timestamp>,
    min_ready_seconds: i32,
    now: Timestamp,
) -> Option<Duration> {
    let wanted = i128::from(min_ready_seconds.max(0)).saturating_mul(1_000_000_000);
    let passed = now
        .as_nanosecond()
        .saturating_sub(ready_since?.as_nanosecond());
    let missing = if wanted > 0 {
        wanted.saturating_sub(passed)
    } else {
        0
    };
    Some(Duration::from_nanos(
        u64::try_from(missing.max(0)).unwrap_or(u64::MAX),
    ))
}

/// The type of the condition of a Pod whose node has not allocated the resources of a resize.
pub const RESIZE_PENDING: &str = "PodResizePending";
/// The type of the condition of a Pod whose containers do not have the allocated resources yet.
pub const RESIZE_IN_PROGRESS: &str = "PodResizeInProgress";
/// The reason of a resize that the node of the Pod can never allocate.
pub const INFEASIBLE: &str = "Infeasible";
/// The reason of a resize that waits until other Pods leave room.
pub const DEFERRED: &str = "Deferred";

/// Returns whether the node of a Pod can never allocate the resources of its resize.
pub fn is_resize_infeasible(status: &PodStatus) -> bool {
    let pending = condition::get(&status.conditions, RESIZE_PENDING);
    pending.is_some_and(|pending| pending.reason == INFEASIBLE)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::PodCondition;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn ready_at(second: i64) -> Pod {
        let mut pod = Pod::default();
        pod.status.conditions.push(PodCondition {
            r#type: "Ready".into(),
            status: "True".into(),
            last_transition_time: at(second).into(),
            ..Default::default()
        });
        pod
    }

    /// Checks D11.
    #[test]
    fn a_ready_pod_is_available_after_min_ready_seconds() {
        let since = ready_since(&ready_at(100));
        for (min_ready_seconds, now, wait) in
            [(0, 100, 0), (10, 104, 6), (10, 109, 1), (10, 110, 0)]
        {
            assert_eq!(
                available_in(since, min_ready_seconds, at(now)),
                Some(Duration::from_secs(wait)),
                "{min_ready_seconds} s, at {now}"
            );
        }
        assert_eq!(available_in(None, 0, at(0)), None);
        let future = Some(Timestamp::MAX);
        assert!(available_in(future, 1, Timestamp::MIN).is_some_and(|wait| !wait.is_zero()));
        assert_eq!(available_in(Some(at(100)), -1, at(0)), Some(Duration::ZERO));
    }

    #[test]
    fn a_pod_is_ready_if_its_ready_condition_is_true() {
        let mut pod = ready_at(100);
        assert!(is_ready(&pod));
        assert_eq!(ready_since(&pod), Some(at(100)));
        pod.status.conditions[0].status = "False".into();
        assert!(!is_ready(&pod));
        assert_eq!(ready_since(&pod), None);
    }

    #[test]
    fn a_pod_that_is_terminal_or_being_deleted_is_not_active() {
        let mut pod = Pod::default();
        assert!(is_active(&pod));
        pod.status.phase = "Failed".into();
        assert!(is_terminal(&pod) && !is_active(&pod));
        pod.status.phase = "Running".into();
        pod.metadata.deletion_timestamp = Some(at(1).into());
        assert!(!is_active(&pod));
    }
}
