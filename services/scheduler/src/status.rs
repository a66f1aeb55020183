//! Status: what a waiting Pod tells its user. Pure.

use jiff::Timestamp;
use setpoint_model::condition;
use setpoint_proto::core::{PodCondition, PodStatus};

/// The status with the refusal in it, or `None` if it says so already.
pub fn refused(status: &PodStatus, message: &str, now: Timestamp) -> Option<PodStatus> {
    let mut status = status.clone();
    let refusal = PodCondition {
        r#type: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: "Unschedulable".to_owned(),
        message: message.to_owned(),
        last_transition_time: now.into(),
        ..Default::default()
    };
    condition::set(&mut status.conditions, refusal).then_some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_condition_that_is_written_once() {
        let now = Timestamp::from_second(7).expect("a time");
        let status = refused(&PodStatus::default(), "no room", now).expect("it is new");
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
        assert_eq!(refused(&status, "no room", now), None);
        assert!(refused(&status, "too many pods", now).is_some());
    }
}
