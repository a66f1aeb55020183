//! Status: the condition `Ready`, with the reason and messages of upstream.

use setpoint_controller::Outcome;
use setpoint_model::condition;
use setpoint_proto::meta::Condition;
use setpoint_proto::networking::ServiceCidrStatus;

use crate::{Action, World};

const BLOCKED: &str = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new \
                       ServiceCIDR";

/// Returns the status that a ServiceCIDR should have; `None` if it has it. After a write of its finalizers the next
/// observation decides.
pub fn status(world: &World, outcome: &Outcome<Action>) -> Option<ServiceCidrStatus> {
    if !outcome.plan.is_empty() {
        return None;
    }
    let (status, reason, message) = match (world.range.meta.deleting, world.in_use) {
        (false, _) => (condition::TRUE, "", "Kubernetes Service CIDR is ready"),
        (true, Some(_)) => (condition::FALSE, "Terminating", BLOCKED),
        (true, None) => return None,
    };
    let mut conditions = world.range.object.status.conditions.clone();
    let ready = Condition {
        r#type: "Ready".to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: world.now.into(),
        ..Condition::default()
    };
    condition::set(&mut conditions, ready).then_some(ServiceCidrStatus { conditions })
}
