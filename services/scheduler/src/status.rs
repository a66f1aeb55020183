//! Status: the condition of an unschedulable Pod. Pure.

use jiff::Timestamp;
use setpoint_model::condition;
use setpoint_proto::core::{PodCondition, PodStatus};

/// Returns the status with the condition, or `None` if it has that already.
pub fn unschedulable(status: &PodStatus, message: &str, now: Timestamp) -> Option<PodStatus> {
    let mut status = status.clone();
    let unschedulable = PodCondition {
        r#type: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: "Unschedulable".to_owned(),
        message: message.to_owned(),
        last_transition_time: now.into(),
        ..Default::default()
    };
    condition::set(&mut status.conditions, unschedulable).then_some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_is_written_once() {
        let now = Timestamp::from_second(7).expect("a time");
        let status = unschedulable(&PodStatus::default(), "no room", now).expect("it is new");
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
        assert_eq!(unschedulable(&status, "no room", now), None);
        assert!(unschedulable(&status, "too many pods", now).is_some());
    }
}
