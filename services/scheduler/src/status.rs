//! Status: the conditions of unschedulable Pods and of victims. Pure.

use jiff::Timestamp;
use setpoint_model::{condition, pod};
use setpoint_proto::core::{Pod, PodCondition, PodStatus};

/// The reason of the condition `DisruptionTarget` of a Pod that makes room for another.
pub const PREEMPTION: &str = "PreemptionByScheduler";

/// The change of a Pod's nominated node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nomination {
    /// It stays.
    Keep,
    /// The Pod has none.
    Clear,
    /// It is this node, on which victims make room for the Pod.
    Node(String),
}

/// Returns the status with the condition of this generation of the Pod and the nominated node, or `None` if it has
/// those already. As upstream, another generation alone is no change.
pub fn unschedulable(
    status: &PodStatus,
    generation: i64,
    message: &str,
    nomination: &Nomination,
    now: Timestamp,
) -> Option<PodStatus> {
    let mut status = status.clone();
    let unschedulable = PodCondition {
        r#type: "PodScheduled".to_owned(),
        status: condition::FALSE.to_owned(),
        reason: "Unschedulable".to_owned(),
        message: message.to_owned(),
        last_transition_time: now.into(),
        observed_generation: generation,
        ..Default::default()
    };
    let changed = condition::set(&mut status.conditions, unschedulable);
    (nominate(&mut status, nomination) || changed).then_some(status)
}

/// Returns the status with a nominated node, or `None` if it has it.
pub fn nominated(status: &PodStatus, node: &str) -> Option<PodStatus> {
    let mut status = status.clone();
    nominate(&mut status, &Nomination::Node(node.to_owned())).then_some(status)
}

/// Returns the status without a nominated node, or `None` if it has none.
pub fn without_nomination(status: &PodStatus) -> Option<PodStatus> {
    let mut status = status.clone();
    nominate(&mut status, &Nomination::Clear).then_some(status)
}

fn nominate(status: &mut PodStatus, nomination: &Nomination) -> bool {
    let node = match nomination {
        Nomination::Keep => return false,
        Nomination::Clear => "",
        Nomination::Node(node) => node,
    };
    let changed = status.nominated_node_name != node;
    node.clone_into(&mut status.nominated_node_name);
    changed
}

/// Sets the condition of a victim. Returns whether the Pod did not have it.
pub fn mark_as_victim(pod: &mut Pod, scheduler: &str, now: Timestamp) -> bool {
    let message = format!("{scheduler}: preempting to accommodate a higher priority pod");
    pod::mark_disrupted(pod, PREEMPTION, &message, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks E6.
    #[test]
    fn the_condition_is_written_once() {
        let now = Timestamp::from_second(7).expect("a time");
        let keep = Nomination::Keep;
        let status = PodStatus::default();
        let status = unschedulable(&status, 3, "no room", &keep, now).expect("it is new");
        let condition = &status.conditions[0];
        assert_eq!(
            (&*condition.r#type, &*condition.status),
            ("PodScheduled", "False")
        );
        assert_eq!(
            (&*condition.reason, &*condition.message),
            ("Unschedulable", "no room")
        );
        assert_eq!(condition.last_transition_time, now.into());
        assert_eq!(condition.observed_generation, 3);
        assert_eq!(unschedulable(&status, 4, "no room", &keep, now), None);
        assert!(unschedulable(&status, 4, "too many pods", &keep, now).is_some());
    }

    /// Checks C7.
    #[test]
    fn the_nominated_node_is_set_kept_and_cleared() {
        let now = Timestamp::UNIX_EPOCH;
        let write =
            |status: &PodStatus, nomination| unschedulable(status, 1, "full", &nomination, now);
        let node = || Nomination::Node("a".into());
        let nominated = write(&PodStatus::default(), node()).expect("it is new");
        assert_eq!(nominated.nominated_node_name, "a");
        assert_eq!(write(&nominated, node()), None);
        assert_eq!(write(&nominated, Nomination::Keep), None);
        let cleared = write(&nominated, Nomination::Clear).expect("it had a node");
        assert_eq!(cleared.nominated_node_name, "");
        assert_eq!(without_nomination(&nominated), Some(cleared.clone()));
        assert_eq!(without_nomination(&cleared), None);
        let again = super::nominated(&cleared, "a").expect("it has none");
        assert_eq!(again.nominated_node_name, "a");
        assert_eq!(super::nominated(&again, "a"), None);
    }

    /// Checks C7.
    #[test]
    fn a_victim_is_marked_once_with_upstreams_condition() {
        let mut pod = Pod::default();
        assert!(mark_as_victim(
            &mut pod,
            "default-scheduler",
            Timestamp::UNIX_EPOCH
        ));
        assert!(!mark_as_victim(
            &mut pod,
            "default-scheduler",
            Timestamp::UNIX_EPOCH
        ));
        let condition = &pod.status.conditions[0];
        let words = (&*condition.r#type, &*condition.status, &*condition.reason);
        assert_eq!(words, ("DisruptionTarget", "True", "PreemptionByScheduler"));
        let message = "default-scheduler: preempting to accommodate a higher priority pod";
        assert_eq!(condition.message, message);
    }
}
