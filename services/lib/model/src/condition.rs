//! Conditions: what an object's status says about it, each type at most once.

use setpoint_proto::apps::{DeploymentCondition, ReplicaSetCondition};
use setpoint_proto::core::{NamespaceCondition, NodeCondition, PodCondition};
use setpoint_proto::meta;
use setpoint_proto::meta::Time;

/// The value of a condition that holds.
pub const TRUE: &str = "True";
/// The value of a condition that does not hold.
pub const FALSE: &str = "False";
/// The value of a condition that nobody can judge.
pub const UNKNOWN: &str = "Unknown";

/// One statement about an object, and since when it has been so.
pub trait Condition {
    /// Returns its type, for example `Ready`.
    fn kind(&self) -> &str;
    /// `True`, `False` or `Unknown`.
    fn status(&self) -> &str;
    /// Why, as one word.
    fn reason(&self) -> &str;
    /// Why, for people.
    fn message(&self) -> &str;
    /// When the status last changed.
    fn transition(&self) -> &Time;
    /// When the status last changed, to be set.
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
conditions! { DeploymentCondition ReplicaSetCondition PodCondition NodeCondition NamespaceCondition meta::Condition }

/// The condition of this type.
pub fn get<'a, C: Condition>(conditions: &'a [C], kind: &str) -> Option<&'a C> {
    conditions.iter().find(|condition| condition.kind() == kind)
}

/// Is there a condition of this type, and does it hold?
pub fn is_true<C: Condition>(conditions: &[C], kind: &str) -> bool {
    get(conditions, kind).is_some_and(|condition| condition.status() == TRUE)
}

/// Puts the condition in place of the one of its type. Says whether status, reason or message changed.
///
/// While the status stays, so does the time of its last transition.
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
    let news = |c: &C| {
        (
            c.status().to_owned(),
            c.reason().to_owned(),
            c.message().to_owned(),
        )
    };
    let changed = news(old) != news(&condition);
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
    fn the_transition_time_moves_only_with_the_status() {
        let mut conditions = Vec::new();
        assert!(set(&mut conditions, ready(FALSE, "Starting", 1)));
        assert!(set(&mut conditions, ready(FALSE, "Waiting", 2)));
        assert_eq!(since(&conditions), 1);
        assert!(set(&mut conditions, ready(TRUE, "Waiting", 3)));
        assert_eq!(since(&conditions), 3);
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn a_condition_holds_only_if_it_is_there_and_true() {
        for (status, holds) in [(TRUE, true), (FALSE, false), (UNKNOWN, false)] {
            assert_eq!(is_true(&[ready(status, "", 1)], "Ready"), holds, "{status}");
        }
        assert!(!is_true(&[ready(TRUE, "", 1)], "Initialized"));
    }

    #[test]
    fn saying_the_same_again_changes_nothing() {
        let mut conditions = vec![ready(TRUE, "", 1)];
        assert!(!set(&mut conditions, ready(TRUE, "", 9)));
        assert_eq!(conditions, [ready(TRUE, "", 1)]);
    }
}
