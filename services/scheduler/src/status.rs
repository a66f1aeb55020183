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
