//! Plan: computes the replicas to set.

use setpoint_controller::Plan;

use crate::{World, decide};

/// A write to the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sets the replicas.
    Scale {
        /// The replicas.
        replicas: i32,
        /// The reason in the Event.
        reason: String,
    },
}

/// Returns the change of the replicas, if there is one.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    if world.autoscaler.meta.deleting {
        return plan;
    }
    if let Some(rescale) = decide(world).rescale {
        let scale = Action::Scale {
            replicas: rescale.to,
            reason: rescale.reason,
        };
        plan.step(scale, rescale.because);
    }
    plan
}
