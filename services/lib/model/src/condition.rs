//! Conditions in the status of objects.

use setpoint_proto::apiextensions::CustomResourceDefinitionCondition;
use setpoint_proto::apiregistration::ApiServiceCondition;
use setpoint_proto::apps::{DeploymentCondition, ReplicaSetCondition};
use setpoint_proto::autoscaling_v2::HorizontalPodAutoscalerCondition;
use setpoint_proto::batch::JobCondition;
use setpoint_proto::core::{
    NamespaceCondition, NodeCondition, PodCondition, ReplicationControllerCondition,
};
use setpoint_proto::meta;
use setpoint_proto::meta::Time;

/// The status of a condition that holds.
pub const TRUE: &str = "True";
/// The status of a condition that does not hold.
pub const FALSE: &str = "False";
/// The status of a condition that is not known to hold or not.
pub const UNKNOWN: &str = "Unknown";

/// The fields that all types of conditions have.
pub trait Condition {
    /// Returns its type, for example `Ready`.
    fn kind(&self) -> &str;
    /// Returns its status: `True`, `False` or `Unknown`.
    fn status(&self) -> &str;
    /// Returns the reason, in CamelCase.
    fn reason(&self) -> &str;
    /// Returns the message for users.
    fn message(&self) -> &str;
    /// Returns the time at which the status last changed.
    fn transition(&self) -> &Time;
    /// Returns the time at which the status last changed, to be set.
    fn transition_mut(&mut self) -> &mut Time;
}

macro_rules! conditions {
    ($($type:ty)*) => {$(
        impl Condition for $type {
            fn kind(&self) -> &str { &self.r#type }
            fn status(&self) -> &str { &self.status }
            fn reason(&self) -> &str { &self.reason }
            fn message(&self) -> &str { &self.message }
            fn transition(&self) -> &Time { &self.last_transition_time }
            fn transition_mut(&mut self) -> &mut Time { &mut self.last_transition_time }
        }
    )*};
}
conditions! {
    ApiServiceCondition CustomResourceDefinitionCondition DeploymentCondition HorizontalPodAutoscalerCondition
    JobCondition NamespaceCondition NodeCondition PodCondition ReplicaSetCondition ReplicationControllerCondition
    meta::Condition
}

/// Returns the condition of a type.
pub fn get<'a, C: Condition>(conditions: &'a [C], kind: &str) -> Option<&'a C> {
    conditions.iter().find(|condition| condition.kind() == kind)
}

/// The condition of nodes on which NetworkPolicies restrict the connections of Pods.
pub const NETWORK_POLICIES_ENFORCED: &str = "NetworkPoliciesEnforced";

/// Returns whether there is a condition of this type and it holds.
pub fn is_true<C: Condition>(conditions: &[C], kind: &str) -> bool {
    get(conditions, kind).is_some_and(|condition| condition.status() == TRUE)
}

/// Adds a condition, or replaces the one of its type. Returns whether status, reason or message changed.
///
/// The transition time of the old condition is kept if the status is the same.
pub fn set<C: Condition>(conditions: &mut Vec<C>, mut condition: C) -> bool {
    let Some(old) = conditions
        .iter_mut()
        .find(|old| old.kind() == condition.kind())
    else {
        conditions.push(condition);
        return true;
    };
    if old.status() == condition.status() {
        *condition.transition_mut() = *old.transition();
    }
    let content = |c: &C| {
        (
            c.status().to_owned(),
            c.reason().to_owned(),
            c.message().to_owned(),
        )
    };
    let changed = content(old) != content(&condition);
    if changed {
        *old = condition;
    }
    changed
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn ready(status: &str, reason: &str, second: i64) -> PodCondition {
        PodCondition {
            r#type: "Ready".into(),
            status: status.into(),
            reason: reason.into(),
            last_transition_time: Timestamp::from_second(second).unwrap().into(),
            ..Default::default()
        }
    }

    fn since(conditions: &[PodCondition]) -> i64 {
        get(conditions, "Ready")
            .unwrap()
            .last_transition_time
            .seconds
            .unwrap()
    }

    #[test]
    fn the_transition_time_changes_only_with_the_status() {
        let mut conditions = Vec::new();
        assert!(set(&mut conditions, ready(FALSE, "Starting", 1)));
        assert!(set(&mut conditions, ready(FALSE, "Waiting", 2)));
        assert_eq!(since(&conditions), 1);
        assert!(set(&mut conditions, ready(TRUE, "Waiting", 3)));
        assert_eq!(since(&conditions), 3);
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn is_true_requires_a_condition_of_the_type_with_status_true() {
        for (status, holds) in [(TRUE, true), (FALSE, false), (UNKNOWN, false)] {
            assert_eq!(is_true(&[ready(status, "", 1)], "Ready"), holds, "{status}");
        }
        assert!(!is_true(&[ready(TRUE, "", 1)], "Initialized"));
    }

    #[test]
    fn setting_an_equal_condition_changes_nothing() {
        let mut conditions = vec![ready(TRUE, "", 1)];
        assert!(!set(&mut conditions, ready(TRUE, "", 9)));
        assert_eq!(conditions, [ready(TRUE, "", 1)]);
    }
}
